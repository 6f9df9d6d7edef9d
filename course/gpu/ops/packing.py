"""Weights and activations in the order in which the lanes of a warp read them (see kernels/skinny_gemm.cu).

Functions take arrays of NumPy or CuPy alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import numbers

ORDERS = ("rows", "gate-up", "heads")
"""Which rows of W form a tile of 16: as they come; 8 gates and their 8 ups; dimensions of a head and their partners."""


def shape(groups: int, columns: int) -> tuple[int, ...]:
    """The shape of packed activations with room for 8 x groups rows: (K / 32, groups, 8 rows, 4, 8)."""
    return (columns // 32, groups, 8, 4, 8)


def squares_shape(groups: int, columns: int) -> tuple[int, int]:
    """The shape of the squares of such rows, in parts of 16 columns."""
    return columns // 16, 8 * groups


def squares_of(rows: np.ndarray, kind: str) -> np.ndarray:
    """The squares of rows (m, columns) in parts of 16 columns, float32 (columns / 16, m)."""
    f = numbers.decode(rows, kind)
    return (f * f).reshape(len(rows), -1, 16).sum(-1).T


def put_rows(packed: Any, rows: Any) -> None:
    """Write rows (m, columns) into packed activations; places for more rows are left alone."""
    pieces = packed.shape[0]
    for group in range(-(-len(rows) // 8)):
        some = rows[8 * group : 8 * group + 8]
        packed[:, group, : len(some)] = some.reshape(len(some), pieces, 4, 8).swapaxes(0, 1)


def rows_of(packed: Any, count: int) -> Any:
    """The first `count` rows of packed activations, (count, columns)."""
    pieces, groups = packed.shape[:2]
    return packed.transpose(1, 2, 0, 3, 4).reshape(8 * groups, 32 * pieces)[:count]


def tile_rows(rows: int, order: str, width: int = 0) -> np.ndarray:
    """The row of W at each place of the tiles, shape (rows / 16, 16). width: of a head, for "heads"."""
    tile, i = np.arange(rows // 16)[:, None], np.arange(8)[None]
    if order == "rows":
        first, second = 16 * tile + i, 16 * tile + 8 + i
    elif order == "gate-up":
        first = 8 * tile + i
        second = first + rows // 2
    elif order == "heads":
        per_head = width // 16
        first = tile // per_head * width + tile % per_head * 8 + i
        second = first + width // 2
    else:
        raise ValueError(f"tiles are ordered by {', '.join(ORDERS)}, not {order!r}")
    return np.concatenate([first, second], 1)


def packed_weights(w: Any, order: str = "rows", width: int = 0) -> Any:
    """W (N, K) packed: a copy of shape (N / 16, K / 32, 2 halves, 8 rows, 4, 8). N a multiple of 16, K of 32.

    Raises ValueError for other sizes.
    """
    rows, columns = (int(size) for size in w.shape)
    if rows % 16 or columns % 32:
        raise ValueError(f"weights of {rows} x {columns} cannot be packed: rows come by 16 and columns by 32")
    if order != "rows":
        places = tile_rows(rows, order, width).reshape(-1)
        w = w.take(places if isinstance(w, np.ndarray) else _on_device(w, places), axis=0)
    w = w.reshape(rows // 16, 2, 8, columns // 32, 4, 8).transpose(0, 3, 1, 2, 4, 5)
    return np.ascontiguousarray(w) if isinstance(w, np.ndarray) else w.copy(order="C")


def _on_device(w: Any, places: np.ndarray) -> Any:
    """`places` as an array of the device that `w` is on."""
    array = type(w)(places.shape, places.dtype)
    array.set(places)
    return array
