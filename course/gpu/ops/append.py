"""Writes keys and values of new tokens into the paged cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import numbers
from course.gpu.ops.queue import Launch, Queue, array, multiple

THREADS = 128
BLOCK = 16
"""Tokens a block of the cache."""


def prepare(
    queue: Queue, qkv: Any, k_cache: Any, v_cache: Any, slots: Any, *, kind: str = "bf16", chained: bool = False
) -> Launch:
    """Copies the last 2 x KV heads of each token to its slot, block x 16 + place in the block; a negative one nowhere.

    qkv: (tokens, heads + 2 KV heads, width). caches: (blocks, KV heads, 16, width). slots: (tokens,) int32, inside of
    the cache (`checked_slots` looks). Raises ValueError for arrays that do not fit together.
    """
    tokens, all_heads, width = (int(size) for size in qkv.shape)
    blocks, kv_heads = int(k_cache.shape[0]), int(k_cache.shape[1])
    multiple("width", width, numbers.wide(kind), "16 bytes at a time")
    if all_heads <= 2 * kv_heads:
        raise ValueError(f"qkv has {all_heads} heads: queries and twice the {kv_heads} KV heads do not fit into that")
    array("qkv", qkv, (tokens, all_heads, width), kind)
    array("k_cache", k_cache, (blocks, kv_heads, BLOCK, width), kind)
    array("v_cache", v_cache, (blocks, kv_heads, BLOCK, width), kind)
    array("slots", slots, (tokens,), np.int32)
    if queue.plain:
        return lambda: twin(qkv, k_cache, v_cache, slots)
    units = 2 * kv_heads * (width // numbers.wide(kind))
    args = (qkv, k_cache, v_cache, slots, all_heads - 2 * kv_heads, kv_heads, width)
    return queue.prepare(queue.kernel("append", kind), (tokens, -(-units // THREADS)), THREADS, args, chained=chained)


def twin(qkv: np.ndarray, k_cache: np.ndarray, v_cache: np.ndarray, slots: np.ndarray) -> None:
    """The kernel in NumPy: writes into the caches."""
    kv_heads = k_cache.shape[1]
    new = np.asarray(qkv)[np.asarray(slots) >= 0]
    block, place = np.divmod(np.asarray(slots)[np.asarray(slots) >= 0], BLOCK)
    k_cache[block, :, place] = new[:, -2 * kv_heads : -kv_heads]
    v_cache[block, :, place] = new[:, -kv_heads:]


def checked_slots(slots: np.ndarray, blocks: int) -> np.ndarray:
    """`slots` as int32; ValueError for one behind the end of a cache of `blocks`, or two tokens for one slot."""
    slots = np.asarray(slots)
    if slots.size and int(slots.max()) >= blocks * BLOCK:
        raise ValueError(f"slot {int(slots.max())} is outside a cache of {blocks} blocks of {BLOCK} tokens")
    used = slots[slots >= 0]
    if len(np.unique(used)) < len(used):
        raise ValueError("two tokens of one step have the same slot: do two block tables share a block?")
    return slots.astype(np.int32)
