"""Causal attention of prompt chunks over the paged KV cache, which holds earlier chunks and the chunks' own tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from course.base.settings import whole
from course.gpu.ops import append, numbers
from course.gpu.ops.decode_attention import uses_tensor_cores
from course.gpu.ops.queue import Launch, Queue, array

BLOCK = append.BLOCK
KEYS = 64
WARPS = 4


class PrefillAttention:
    """Workspace and launches for chunks of up to `max_tokens` tokens together.

    heads, kv_heads, width, kind, tensor: as in DecodeAttention. max_parts: tiles x splits that the workspace has room
    for; without it chunks are not split over keys.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        heads: int,
        kv_heads: int,
        width: int,
        kind: str = "bf16",
        tensor: bool | None = None,
        max_parts: int = 64,
    ) -> None:
        if heads % kv_heads:
            raise ValueError(f"{heads} query heads over {kv_heads} KV heads cannot be divided evenly")
        if width not in (32, 64, 128):
            raise ValueError(f"heads of {width} numbers: the kernel takes 32, 64 or 128")
        self.queue, self.heads, self.kv_heads, self.width, self.kind = queue, heads, kv_heads, width, kind
        self.tensor = uses_tensor_cores(queue, kind, width) if tensor is None else tensor
        self.max_parts = max_parts if self.tensor else 0
        device, tile = queue.device, 16 * WARPS
        self.sums = device.empty((max(1, max_parts) * heads * tile, width), np.float32)
        self.weights = device.empty((max(1, max_parts) * heads * tile, 2), np.float32)
        self.counters = device.to_device(np.zeros((max(1, max_parts), heads), np.uint32))

    def slabs(self, chunks: Sequence[Sequence[int]]) -> int:
        """16-token slabs a warp: two share what they read, where there are blocks enough to fill the device anyway."""
        if not self.tensor:
            return 1
        blocks = sum(-(-chunk[1] // (32 * WARPS)) for chunk in chunks) * self.heads
        return 2 if blocks >= 1.5 * self.queue.multiprocessors and self.queue.device.is_gpu else 1

    def splits(self, chunks: Sequence[Sequence[int]], slabs: int, resident: float = 3) -> int:
        """Parts that the keys are split into, so that a small chunk keeps the device busy too.

        resident: thread blocks that they should have on each multiprocessor.
        """
        tiles = len(self.tiles(chunks, slabs))
        slots = int(resident * self.queue.multiprocessors)
        longest = max(tokens + cached for _, tokens, cached, _ in chunks)
        if slabs > 1 or not self.max_parts:
            return 1
        wanted = slots // (tiles * self.heads)  # no second round: adding up costs more than it would bring
        return max(1, min(wanted, self.max_parts // tiles, longest // (4 * KEYS) or 1))

    def tiles(self, chunks: Sequence[Sequence[int]], slabs: int) -> np.ndarray:
        """(chunk, first token) of each tile, those with most keys first, int32."""
        size = 16 * slabs * WARPS if self.tensor else WARPS
        found = [(i, start) for i, chunk in enumerate(chunks) for start in range(0, chunk[1], size)]
        found.sort(key=lambda tile: -(chunks[tile[0]][2] + tile[1]))
        return np.array(found, np.int32).reshape(-1, 2)

    def prepare(
        self,
        q: Any,
        k_cache: Any,
        v_cache: Any,
        table: Any,
        chunks: Any,
        tiles: Any,
        out: Any,
        *,
        slabs: int = 1,
        splits: int = 1,
        chained: bool = False,
    ) -> Launch:
        """A launch. q, out: (tokens, heads, width); a chunk's rows are where `chunks` says, others stay as they are.

        chunks: (first row, tokens, cached tokens, row of the table) of each, int32 on the device; see
        `checked_chunks`. tiles: `self.tiles(...)` on the device, for the same slabs; a tile that begins behind the end
        of its chunk does nothing. splits: see `self.splits`.
        Raises ValueError for arrays that do not fit together.
        """
        args = self.arguments(q, k_cache, v_cache, table, chunks, tiles, out, splits)
        if self.queue.plain:
            return lambda: _twin_into(out, q, k_cache, v_cache, table, chunks, self.kind)
        kernel = self.queue.kernel(
            "prefill_attention", self.kind, RESIDENT=2 if slabs > 1 else 3, **self.macros(slabs, splits)
        )
        grid = (int(tiles.shape[0]), self.heads, splits)
        shared = self.shared_bytes(slabs)
        return self.queue.prepare(kernel, grid, 32 * WARPS, args, shared_bytes=shared, chained=chained)

    def macros(self, slabs: int, splits: int) -> dict[str, int]:
        """What the kernel is compiled for."""
        found = {"HEAD_DIM": self.width, "G": self.heads // self.kv_heads, "KV_HEADS": self.kv_heads, "WARPS": WARPS}
        return found | ({"TENSOR": 1, "SLABS": slabs, "SPLIT": int(splits > 1)} if self.tensor else {})

    def shared_bytes(self, slabs: int) -> int:
        """Bytes of shared memory of a thread block: queries, keys and values."""
        return 2 * (16 * slabs * WARPS + 2 * KEYS) * (self.width + 8) if self.tensor else 0

    def arguments(
        self, q: Any, k_cache: Any, v_cache: Any, table: Any, chunks: Any, tiles: Any, out: Any, splits: int
    ) -> tuple:
        """What the kernel takes, with the workspace. Raises ValueError for arrays that do not fit together."""
        heads, kv_heads, width, kind = self.heads, self.kv_heads, self.width, self.kind
        tokens, count = int(q.shape[0]), int(tiles.shape[0])
        array("q", q, (tokens, heads, width), kind)
        array("out", out, (tokens, heads, width), kind)
        array("k_cache", k_cache, (None, kv_heads, BLOCK, width), kind)
        array("v_cache", v_cache, k_cache.shape, kind)
        array("table", table, (None, None), np.int32)
        array("chunks", chunks, (None, 4), np.int32)
        array("tiles", tiles, (count, 2), np.int32)
        whole("splits", splits, high=max(1, self.max_parts // count))
        args = (q, k_cache, v_cache, table, chunks, tiles, out, self.sums, self.weights, self.counters)
        return (*args, int(table.shape[1]), math.log2(math.e) / math.sqrt(width))


def checked_chunks(chunks: Any, rows: int, table_blocks: int) -> np.ndarray:
    """(first row, tokens, cached, table row) of each chunk as int32.

    Raises ValueError for a chunk without tokens, outside of the `rows` of q, or longer than its block table.
    """
    found = np.asarray(chunks, dtype=np.int64).reshape(-1, 4)
    for i, (first, tokens, cached, _) in enumerate(found.tolist()):
        if tokens < 1 or cached < 0:
            raise ValueError(f"chunk {i} has {tokens} tokens behind {cached} cached ones: at least 1 and 0 are needed")
        if first < 0 or first + tokens > rows:
            raise ValueError(f"chunk {i} takes the rows {first} to {first + tokens - 1}, and there are {rows}")
        if tokens + cached > table_blocks * BLOCK:
            raise ValueError(
                f"chunk {i} ends at token {tokens + cached}: its table of {table_blocks} blocks is too short"
            )
    return found.astype(np.int32)


def _twin_into(out, q, k_cache, v_cache, table, chunks, kind) -> None:
    with np.errstate(invalid="ignore"):  # rows that are nobody's may hold anything
        found = reference(q, k_cache, v_cache, table, chunks, kind)
    for first, tokens, _, _ in np.asarray(chunks).tolist():
        out[first : first + tokens] = numbers.encode(found[first : first + tokens], kind)


def reference(q, k_cache, v_cache, table, chunks, kind) -> np.ndarray:
    """The definition in float64, from the numbers as they are stored; rows outside of the chunks are zero."""
    queries = numbers.decode(q, kind).astype(np.float64)
    heads, width = queries.shape[1:]
    kv_heads = k_cache.shape[1]
    found = np.zeros(queries.shape)
    for first, tokens, cached, row in np.asarray(chunks).tolist():
        if not tokens:  # a place that nobody uses
            continue
        end = cached + tokens
        keys, values = (
            numbers.decode(cache[table[row, : -(-end // BLOCK)]], kind)
            .astype(np.float64)
            .swapaxes(1, 2)
            .reshape(-1, kv_heads, width)[:end]
            for cache in (k_cache, v_cache)
        )
        grouped = queries[first : first + tokens].reshape(tokens, kv_heads, heads // kv_heads, width)
        scores = np.einsum("qhgd,thd->qhgt", grouped, keys) / math.sqrt(width)
        hidden = np.arange(end) > cached + np.arange(tokens)[:, None]
        scores[np.broadcast_to(hidden[:, None, None], scores.shape)] = -np.inf
        share = np.exp(scores - scores.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        found[first : first + tokens] = np.einsum("qhgt,thd->qhgd", share, values).reshape(tokens, heads, width)
    return found
