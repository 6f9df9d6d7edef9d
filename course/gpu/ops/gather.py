"""Rows of a table by their numbers: embeddings of tokens, or the last hidden states of the sequences of a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import numbers, packing
from course.gpu.ops.queue import Launch, Queue, array, multiple

THREADS = 128


def prepare(
    queue: Queue,
    table: Any,
    ids: Any,
    out: Any,
    *,
    groups: int = 0,
    squares: Any = None,
    kind: str = "bf16",
    chained: bool = False,
) -> Launch:
    """out[i] = table[ids[i]]. table: (any, columns). ids: (rows,) int32, inside of the table (not looked at).

    groups: 0, and out is (rows, columns); or out is packed for `skinny_gemm`, with room for 8 x groups rows.
    squares: float32 (columns / 16, 8 x groups) for the squares of packed rows (`packing.squares_of`), or None.
    Raises ValueError for arrays that do not fit together.
    """
    rows, columns = int(ids.shape[0]), int(table.shape[1])
    multiple("columns", columns, 32 if groups else numbers.wide(kind), "16 bytes at a time, packed 32 numbers")
    array("table", table, (None, columns), kind)
    array("ids", ids, (rows,), np.int32)
    if groups and rows > 8 * groups:
        raise ValueError(f"{rows} rows do not fit into {groups} groups of 8")
    array("out", out, packing.shape(groups, columns) if groups else (rows, columns), kind)
    if squares is not None:
        array("squares", squares, packing.squares_shape(groups, columns), np.float32)
    if queue.plain:
        return lambda: twin(table, ids, out, groups, squares, kind)
    grid = (rows, -(-columns // (THREADS * numbers.wide(kind))))
    macros = {"GROUPS": groups} | ({} if squares is None else {"SQUARES": 1})
    args = (table, ids, out, queue.nothing(np.float32) if squares is None else squares, columns)
    return queue.prepare(queue.kernel("gather", kind, **macros), grid, THREADS, args, chained=chained)


def twin(
    table: np.ndarray, ids: np.ndarray, out: np.ndarray, groups: int, squares: np.ndarray | None, kind: str
) -> None:
    """The kernel in NumPy: writes `out` and `squares`."""
    rows = np.asarray(table)[np.asarray(ids)]
    if groups:
        packing.put_rows(out, rows)
        if squares is not None:
            squares[:, : len(rows)] = packing.squares_of(rows, kind)
    else:
        out[...] = rows
