"""Writes keys and values of new tokens into a paged cache of 8-bit numbers, divided by the scale of each head."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import e4m3, numbers
from course.gpu.ops.append import BLOCK
from course.gpu.ops.queue import Launch, Queue, array, multiple

THREADS = 128


def prepare(
    queue: Queue,
    qkv: Any,
    k_cache: Any,
    v_cache: Any,
    scales: Any,
    slots: Any,
    *,
    kind: str = "bf16",
    chained: bool = False,
) -> Launch:
    """Rounds the last 2 x KV heads of each token to its slot, as `append.prepare` copies them.

    qkv: (tokens, heads + 2 KV heads, width). caches: (blocks, KV heads, 16, width) uint8. scales: (2, KV heads)
    float32, of keys and of values. slots: (tokens,) int32, inside of the cache (`append.checked_slots` looks). Raises
    ValueError for arrays that do not fit together.
    """
    tokens, all_heads, width = (int(size) for size in qkv.shape)
    blocks, kv_heads = int(k_cache.shape[0]), int(k_cache.shape[1])
    multiple("width", width, 4, "4 bytes at a time")
    if all_heads <= 2 * kv_heads:
        raise ValueError(f"qkv has {all_heads} heads: queries and twice the {kv_heads} KV heads do not fit into that")
    array("qkv", qkv, (tokens, all_heads, width), kind)
    array("k_cache", k_cache, (blocks, kv_heads, BLOCK, width), np.uint8)
    array("v_cache", v_cache, (blocks, kv_heads, BLOCK, width), np.uint8)
    array("scales", scales, (2, kv_heads), np.float32)
    array("slots", slots, (tokens,), np.int32)
    if queue.plain:
        return lambda: twin(qkv, k_cache, v_cache, scales, slots, kind)
    args = (qkv, k_cache, v_cache, scales, slots, all_heads - 2 * kv_heads, kv_heads, width)
    places = -(-2 * kv_heads * (width // 4) // THREADS)
    return queue.prepare(queue.kernel("fp8_append", kind), (tokens, places), THREADS, args, chained=chained)


def twin(
    qkv: np.ndarray, k_cache: np.ndarray, v_cache: np.ndarray, scales: np.ndarray, slots: np.ndarray, kind: str
) -> None:
    """The kernel in NumPy: writes into the caches."""
    kv_heads = k_cache.shape[1]
    kept = np.asarray(slots) >= 0
    new = numbers.decode(np.asarray(qkv)[kept], kind)
    block, place = np.divmod(np.asarray(slots)[kept], BLOCK)
    k_cache[block, :, place] = e4m3.encode(new[:, -2 * kv_heads : -kv_heads] / scales[0][:, None])
    v_cache[block, :, place] = e4m3.encode(new[:, -kv_heads:] / scales[1][:, None])
