"""Attention of one decode step in one layer, ready to launch: the course's kernel on a GPU, NumPy on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from course.gpu.ops import numbers, work_list
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.ops.queue import Queue, multiple

HEADS, WIDTH, BLOCK = 32, 128, 16
"""Of the queries, of a head, and tokens of a block of the KV cache."""
GPU_KIND = "bf16"


def attention(pool: np.ndarray, table: np.ndarray, queries: np.ndarray, gathered: np.ndarray) -> np.ndarray:
    """One token of one sequence in one layer, in NumPy: shape of the queries.

    pool: (2, blocks, 16, KV heads, width), K and V. table: the sequence's blocks. queries: (KV heads, group, width).
    gathered: room for those blocks in their order; a fresh array each time would be timed as well.
    """
    np.take(pool, table, axis=1, out=gathered, mode="clip")
    return over(gathered, queries)


def over(piece: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The same over blocks that lie one behind the other: shape (2, blocks, 16, KV heads, width)."""
    keys, values = (one.reshape(-1, *piece.shape[3:]).transpose(1, 0, 2) for one in piece)
    scores = queries @ keys.transpose(0, 2, 1) / piece.shape[-1] ** 0.5
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True) @ values


def _repeated(one: np.ndarray, sequences: int, axis: int) -> np.ndarray:
    """Memory for all sequences, each with the same numbers: drawing others would take longer than what is timed."""
    return np.concatenate([one] * sequences, axis=axis)


@lru_cache(maxsize=4)
def _drawn(blocks: int, kv_heads: int) -> np.ndarray:
    """K and V of one sequence; to draw them takes longer than to copy them."""
    return np.random.default_rng(0).standard_normal((2, blocks, BLOCK, kv_heads, WIDTH), dtype=np.float32)


def in_numpy(context: int, kv_heads: int, sequences: int = 1, scattered: bool = True) -> Callable[[], Any]:
    """Sequences one after the other, in float32; their blocks lie scattered over the pool, or one behind the other.

    context: tokens of each. NumPy multiplies what lies together as it is; what is scattered it gathers first. Raises
    ValueError unless they fill their blocks.
    """
    multiple("context", context, BLOCK, "full blocks of the KV cache")
    rng = np.random.default_rng(0)
    blocks = context // BLOCK
    pool = _repeated(_drawn(blocks, kv_heads), sequences, axis=1)
    tables = rng.permutation(sequences * blocks).reshape(sequences, blocks)
    queries = rng.standard_normal((sequences, kv_heads, HEADS // kv_heads, WIDTH), dtype=np.float32)
    gathered = np.empty((2, blocks, BLOCK, kv_heads, WIDTH), np.float32)
    if not scattered:
        pieces = np.split(pool, sequences, axis=1)
        return lambda: [over(piece, each) for piece, each in zip(pieces, queries, strict=True)]
    return lambda: [attention(pool, table, each, gathered) for table, each in zip(tables, queries, strict=True)]


def on_a_gpu(queue: Queue, context: int, kv_heads: int, sequences: int, scattered: bool = True) -> Callable[[], Any]:
    """The course's paged attention in bf16 over so many sequences of the same context, on a queue of the device.

    scattered: whether the blocks lie scattered over the pool, or those of each sequence one behind the other.

    Raises KernelError, and ValueError unless the context fills its blocks.
    """
    multiple("context", context, BLOCK, "full blocks of the KV cache")
    device = queue.device
    rng = np.random.default_rng(0)
    op = DecodeAttention(
        queue,
        heads=HEADS,
        kv_heads=kv_heads,
        width=WIDTH,
        kind=GPU_KIND,
        max_sequences=sequences,
        max_items=max(4_096, 4 * sequences),
    )
    lengths = np.full(sequences, context, np.int32)
    warps, blocks = op.plan(lengths)
    cut = work_list.cut(lengths, blocks)
    many = sequences * context // BLOCK
    shapes = ((HEADS, WIDTH), *2 * ((context // BLOCK, kv_heads, BLOCK, WIDTH),))
    drawn = [numbers.encode(rng.standard_normal((1, *shape), dtype=np.float32), GPU_KIND) for shape in shapes]
    queries, keys, values = (_repeated(one, sequences, axis=0) for one in (drawn[0], *(one[0] for one in drawn[1:])))
    order = rng.permutation(many) if scattered else np.arange(many)
    table = order.reshape(sequences, -1).astype(np.int32)
    q, k, v, blocks_of, tokens, items, spans = (
        device.to_device(one) for one in (queries, keys, values, table, lengths, cut.items, cut.spans)
    )
    out = device.empty((sequences, HEADS, WIDTH), numbers.dtype(GPU_KIND))
    return op.prepare(q, k, v, blocks_of, tokens, items, spans, out, warps=warps)
