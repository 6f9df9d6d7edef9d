"""y = x W^T for few rows x, as fast as W can be read, with what stands around it in a transformer folded in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from course.gpu.ops import append, fp8_append, numbers, packing, rms_norm, rope
from course.gpu.ops.queue import Launch, Queue, array

FINISHES = {"rows": 0, "residual": 1, "silu": 2, "heads": 3}
ORDERS = {"rows": "rows", "residual": "rows", "silu": "gate-up", "heads": "heads"}
"""How the weights are packed for each finish: see `packing.packed_weights`."""
THREADS = 256
MOST_ROWS = 32


@dataclass(frozen=True)
class Heads:
    """What the finish "heads" needs besides: the caches, the turns of RoPE, and where each token is and goes.

    scales: (2, KV heads) float32, of keys and of values, where the caches have 8-bit numbers.
    """

    k_cache: Any
    v_cache: Any
    turns: Any
    positions: Any
    slots: Any
    scales: Any = None


def groups_for(rows: int) -> int:
    """Groups of 8 rows that the packed activations of `rows` rows have: 1 to 4."""
    return -(-rows // 8)


def variant(groups: int, finish: str, columns: int) -> tuple[int, int, int]:
    """(loads a warp has under way, blocks a multiprocessor, tiles a block) that were fastest on an H200."""
    if finish == "heads":
        return (2, 3, 1) if groups > 2 else (2, 2, 1)
    if finish == "residual":
        if columns > 8_192:
            return (4, 1, 2) if groups in (2, 4) else (4, 2, 1)
        return (2, 2, 1) if groups == 4 else (4, 2, 1)
    if finish == "silu" and groups < 3:
        return 4, 2, 1
    return (2, 3, 1) if groups == 3 else (2, 2, 1)


def prepare(
    queue: Queue,
    x: Any,
    w: Any,
    out: Any,
    rows: int,
    *,
    finish: str = "rows",
    norm: float | None = None,
    heads: Heads | None = None,
    squares: Any = None,
    kind: str = "bf16",
    tensor: bool | None = None,
    depth: int | None = None,
    resident: int | None = None,
    tiles_a_block: int | None = None,
    chained: bool = False,
) -> Launch:
    """One product of `rows` rows, packed, with packed weights (`packing.packed_weights(w, ORDERS[finish])`).

    norm: epsilon, if the rows of x count as normalised (RMSNorm without a weight). finish: "rows": out (rows, N);
    "residual": added to out, packed; "silu": silu(gate) * up into out, packed, N / 2 columns; "heads": RoPE, queries to
    out (rows, heads, width), keys and values to the caches. squares: of the rows of x, float32 in the shape of
    `packing.squares_shape`, which the norm takes as they are; with "residual" those of out, which are written. depth,
    resident, tiles_a_block: see `variant`, which chooses if nothing is said.

    Raises ValueError for arrays that do not fit together, and for fp32, which cuBLAS serves.
    """
    args = arguments(
        queue, x, w, out, rows, finish=finish, norm=norm, heads=heads, squares=squares, kind=kind, most=MOST_ROWS
    )
    if queue.plain:
        return lambda: twin(x, w, out, rows, finish=finish, norm=norm, heads=heads, squares=squares, kind=kind)
    pieces, groups, tiles = int(x.shape[0]), int(x.shape[1]), int(w.shape[0])
    columns = 32 * pieces
    tensor = queue.tensor_cores if tensor is None else tensor
    if not tensor and groups > 1:
        raise ValueError(f"{rows} rows: the form without tensor cores takes 8 at most")
    best = variant(groups, finish, columns) if tensor else (4, 2, 1)
    depth = depth or next(size for size in (best[0], 2, 1) if pieces % size == 0)
    resident = resident or best[1]
    tiles_a_block = tiles_a_block or (best[2] if tiles % best[2] == 0 else 1)
    if pieces % depth:
        raise ValueError(f"K = {columns} is not a multiple of 32 x depth {depth}")
    if tiles % tiles_a_block:
        raise ValueError(f"{tiles} tiles cannot be divided evenly into blocks of {tiles_a_block}")
    macros = {"GROUPS": groups, "DEPTH": depth, "TENSOR": int(tensor), "NORM": int(norm is not None)}
    macros |= {"TILES": tiles_a_block} if tiles_a_block > 1 else {}
    macros |= {} if squares is None else {"SQUARES": 1}
    macros |= {"FINISH": FINISHES[finish], "RESIDENT": resident} | of_heads(out, heads)
    return queue.prepare(
        queue.kernel("skinny_gemm", kind, **macros), (tiles // tiles_a_block,), THREADS, args, chained=chained
    )


def of_heads(out: Any, heads: Heads | None) -> dict[str, int]:
    """Macros of the finish "heads"."""
    if heads is None:
        return {}
    return {"HEAD_DIM": int(out.shape[2])} | ({"E4M3": 1} if heads.scales is not None else {})


def arguments(
    queue: Queue,
    x: Any,
    w: Any,
    out: Any,
    rows: int,
    *,
    finish: str,
    norm: float | None,
    heads: Heads | None,
    squares: Any,
    kind: str,
    most: int,
) -> tuple:
    """What both kernels of packed products take. Raises ValueError for arrays that do not fit, and over `most` rows."""
    if kind == "fp32":
        raise ValueError("packed products are for bf16 and fp16: fp32 is multiplied by `product`")
    pieces, groups = int(x.shape[0]), int(x.shape[1])
    tiles, columns = int(w.shape[0]), 32 * pieces
    if not 1 <= rows <= 8 * groups or rows > most:
        raise ValueError(f"{rows} rows: x has room for {8 * groups}, and more than {most} are for `product`")
    array("x", x, packing.shape(groups, columns), kind)
    array("w", w, (tiles, pieces, 2, 8, 4, 8), kind)
    if (finish == "heads") != (heads is not None):
        raise ValueError('`heads` is only for the finish "heads"')
    width = query_heads = kv_heads = 0
    extra: tuple = ()
    if heads is not None:
        _, query_heads, width = (int(size) for size in out.shape)
        kv_heads = int(heads.k_cache.shape[1])
        if 16 * tiles != (query_heads + 2 * kv_heads) * width:
            raise ValueError(f"W has {16 * tiles} rows: {query_heads} + 2 x {kv_heads} heads of {width} are expected")
        array("out", out, (rows, query_heads, width), kind)
        cached = kind if heads.scales is None else np.uint8
        array("k_cache", heads.k_cache, (None, kv_heads, append.BLOCK, width), cached)
        array("v_cache", heads.v_cache, heads.k_cache.shape, cached)
        scales = heads.turns if heads.scales is None else array("scales", heads.scales, (2, kv_heads), np.float32)
        array("turns", heads.turns, (None, width // 2, 2), np.float32)
        array("positions", heads.positions, (rows,), np.int32)
        array("slots", heads.slots, (rows,), np.int32)
        extra = (heads.k_cache, heads.v_cache, heads.turns, heads.positions, heads.slots, scales)
    else:
        shapes = {"rows": (rows, 16 * tiles), "residual": packing.shape(groups, 16 * tiles)}
        array("out", out, shapes.get(finish) or packing.shape(groups, 8 * tiles), kind)
    if not heads:  # pointers of the right types, which are not followed
        ints, floats = queue.nothing(np.int32), queue.nothing(np.float32)
        extra = (out, out, ints, ints, ints, floats)
    if squares is None:
        squares = queue.nothing(np.float32)
    elif norm is None and finish != "residual":
        raise ValueError('squares are taken by a norm and left by the finish "residual"')
    else:
        array("squares", squares, packing.squares_shape(groups, columns if norm else 16 * tiles), np.float32)
    return (x, w, out, rows, 16 * tiles, columns, norm or 0.0, *extra, squares, query_heads, kv_heads)


def twin(x, w, out, rows, *, finish, norm, heads, kind, squares=None) -> None:
    """The kernel in NumPy: float32 inside, rounded where the kernel rounds; writes `out`, caches and squares."""
    given = numbers.decode(packing.rows_of(np.asarray(x), rows), kind)
    sums = given @ numbers.decode(unpacked_weights(w), kind).T
    if norm is not None:
        sums /= np.sqrt((given * given).mean(-1, keepdims=True) + np.float32(norm))
    tiles = len(w)
    if finish == "rows":
        out[...] = numbers.encode(sums, kind)
    elif finish == "residual":
        before = numbers.decode(packing.rows_of(np.asarray(out), rows), kind)
        after = numbers.encode(before + sums, kind)
        packing.put_rows(out, after)
        if squares is not None:
            squares[:, :rows] = packing.squares_of(after, kind)
    elif finish == "silu":
        gate, up = (sums.reshape(rows, tiles, 2, 8)[:, :, i].reshape(rows, -1) for i in range(2))
        with np.errstate(over="ignore"):
            packing.put_rows(out, numbers.encode(gate / (1 + np.exp(-gate)) * up, kind))
    else:
        width, query_heads, kv_heads = out.shape[2], out.shape[1], heads.k_cache.shape[1]
        order = np.argsort(packing.tile_rows(16 * tiles, "heads", width).reshape(-1))
        vectors = sums[:, order].reshape(rows, -1, width)
        turn = np.asarray(heads.turns)[np.asarray(heads.positions)]
        turned = rope.rotate(vectors[:, : query_heads + kv_heads], turn)
        whole_rows = numbers.encode(np.concatenate([turned, vectors[:, query_heads + kv_heads :]], 1), kind)
        out[...] = whole_rows[:, :query_heads]
        if heads.scales is None:
            append.twin(whole_rows, heads.k_cache, heads.v_cache, np.asarray(heads.slots))
        else:
            fp8_append.twin(whole_rows, heads.k_cache, heads.v_cache, heads.scales, heads.slots, kind)


def unpacked_weights(w: np.ndarray) -> np.ndarray:
    """Packed weights as (N, K), the rows in the order of the tiles."""
    tiles, pieces = w.shape[:2]
    return np.asarray(w).transpose(0, 2, 3, 1, 4, 5).reshape(16 * tiles, 32 * pieces)


def reference(x: np.ndarray, w: np.ndarray, norm: float | None = None) -> np.ndarray:
    """The product of x (rows, K) and W (N, K) transposed, in float64; `norm`: epsilon of a norm of the rows before."""
    x, w = np.asarray(x, dtype=np.float64), np.asarray(w, dtype=np.float64)
    return (rms_norm.reference(x, np.ones(x.shape[1]), norm) if norm is not None else x) @ w.T
