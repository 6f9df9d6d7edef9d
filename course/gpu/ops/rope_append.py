"""`rope` and `append` in one launch, with the queries copied out: what follows the product with Wq, Wk and Wv."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import append, fp8_append, numbers, rms_norm, rope
from course.gpu.ops.queue import Launch, Queue, array, multiple

THREADS = 128


def prepare(
    queue: Queue,
    qkv: Any,
    q: Any,
    k_cache: Any,
    v_cache: Any,
    table: Any,
    positions: Any,
    slots: Any,
    *,
    norm: tuple[Any, float] | None = None,
    scales: Any = None,
    kind: str = "bf16",
    chained: bool = False,
) -> Launch:
    """Arrays as in `rope.prepare` and `append.prepare`; q: (tokens, heads, width).

    norm: as in `silu.prepare`, of qkv. scales: (2, KV heads) float32, of keys and of values, for a cache of 8-bit
    numbers.

    Raises ValueError for arrays that do not fit together.
    """
    tokens, heads, width = (int(size) for size in q.shape)
    blocks, kv_heads = int(k_cache.shape[0]), int(k_cache.shape[1])
    multiple("width", width, 2 * numbers.wide(kind), "16 bytes of each half at a time")
    array("q", q, (tokens, heads, width), kind)
    array("qkv", qkv, (tokens, heads + 2 * kv_heads, width), kind)
    cached = kind if scales is None else np.uint8
    array("k_cache", k_cache, (blocks, kv_heads, append.BLOCK, width), cached)
    array("v_cache", v_cache, (blocks, kv_heads, append.BLOCK, width), cached)
    if scales is not None:
        array("scales", scales, (2, kv_heads), np.float32)
    array("table", table, (None, width // 2, 2), np.float32)
    array("positions", positions, (tokens,), np.int32)
    array("slots", slots, (tokens,), np.int32)
    of_rows = rms_norm.of_rows(norm, tokens, qkv, kind)
    if queue.plain:
        return lambda: twin(qkv, q, k_cache, v_cache, table, positions, slots, kind, norm, scales)
    units = (heads + 2 * kv_heads) * (width // (2 * numbers.wide(kind)))
    args = (
        qkv,
        q,
        k_cache,
        v_cache,
        table,
        positions,
        slots,
        heads,
        kv_heads,
        width,
        *of_rows,
        table if scales is None else scales,
    )
    grid = (tokens, -(-units // THREADS))
    macros = {"THREADS": THREADS} | ({"NORM": 1} if norm else {}) | ({} if scales is None else {"E4M3": 1})
    kernel = queue.kernel("rope_append", kind, **macros)
    return queue.prepare(kernel, grid, THREADS, args, chained=chained)


def twin(qkv, q, k_cache, v_cache, table, positions, slots, kind, norm=None, scales=None) -> None:
    """The kernel in NumPy: writes q and the caches."""
    turning = q.shape[1] + k_cache.shape[1]
    turned = np.array(qkv)
    if norm:
        turned = numbers.encode(numbers.decode(qkv, kind) * rms_norm.factors(norm, kind)[:, :, None], kind)
    turned[:, :turning] = rope.twin(turned[:, :turning], table, positions, kind)
    q[...] = turned[:, : q.shape[1]]
    if scales is None:
        append.twin(turned, k_cache, v_cache, slots)
    else:
        fp8_append.twin(turned, k_cache, v_cache, scales, slots, kind)
