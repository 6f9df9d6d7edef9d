"""Attention of prompt chunks and of decodes in one launch: one computes while the other waits for memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course.base.settings import whole
from course.gpu.ops import work_list
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.ops.prefill_attention import WARPS, PrefillAttention
from course.gpu.ops.queue import Launch

BLOCK = work_list.BLOCK
FLOPS = 180e12
"""What the tiles of a chunk reach on an H100 or H200: enough to tell which part takes longer."""


class MixedAttention:
    """Launches over the workspaces of a DecodeAttention and a PrefillAttention of the same model and queue.

    Raises ValueError for two that differ in heads, kind of numbers or use of tensor cores.
    """

    def __init__(self, decodes: DecodeAttention, chunks: PrefillAttention) -> None:
        for name in ("queue", "heads", "kv_heads", "width", "kind", "tensor"):
            one, other = getattr(decodes, name), getattr(chunks, name)
            if one != other:
                raise ValueError(f"decodes and chunks attend in one launch if they agree: {name} is {one} and {other}")
        self.decodes, self.chunks, self.queue = decodes, chunks, decodes.queue

    def plan(self, lengths: Any) -> int:
        """Blocks of 16 tokens to cut the decodes into; the thread blocks have the warps of a chunk's."""
        return self.decodes.plan(lengths, warps=(WARPS,))[1]

    def slabs(self, chunks: Sequence[Sequence[int]], lengths: Any) -> int:
        """16-token slabs a warp of the chunks' tiles.

        Two, as in PrefillAttention, or also if one such tile a multiprocessor does for the chunks while the decodes,
        which take as long, use the rest of it.
        """
        alone = self.chunks.slabs(chunks)
        if alone == 2 or not (self.chunks.tensor and self.queue.device.is_gpu):
            return alone
        heads, width = self.chunks.heads, self.chunks.width
        tiles = sum(-(-tokens // (32 * WARPS)) for _, tokens, _, _ in chunks) * heads
        pairs = sum(tokens * cached + tokens * (tokens + 1) // 2 for _, tokens, cached, _ in chunks)
        computing = 4 * heads * width * pairs / FLOPS
        reading = int(np.sum(lengths)) * self.decodes.token_bytes / self.queue.read_bandwidth
        return 2 if tiles >= 0.9 * self.queue.multiprocessors and reading >= computing else 1

    def splits(self, chunks: Sequence[Sequence[int]], slabs: int) -> int:
        """Parts that the keys of the chunks are split into: fewer than without decodes, which need room as well."""
        return self.chunks.splits(chunks, slabs, resident=1.5)

    def prepare(
        self,
        q: Any,
        k_cache: Any,
        v_cache: Any,
        table: Any,
        chunks: Any,
        tiles: Any,
        lengths: Any,
        items: Any,
        spans: Any,
        out: Any,
        *,
        slabs: int = 1,
        splits: int = 1,
        resident: int = 2,
    ) -> Launch:
        """A launch. q, out: (tokens, heads, width), the rows of the decodes behind those of the chunks.

        table: (sequences, most blocks), a row for each chunk and then one for each decode. chunks, tiles, slabs,
        splits: as in PrefillAttention. lengths, items, spans: as in DecodeAttention. resident: thread blocks that a
        multiprocessor should hold. Raises ValueError for arrays that do not fit together.
        """
        decodes, rows, sequences = int(lengths.shape[0]), int(q.shape[0]), int(table.shape[0])
        if not 0 < decodes < min(sequences, rows):
            raise ValueError(
                f"{decodes} decodes of {sequences} sequences in {rows} rows: there must be at least one decode, and "
                "rows and a sequence of a chunk before"
            )
        row, sequence = rows - decodes, sequences - decodes
        its = (q[row:], k_cache, v_cache, table[sequence:], lengths, items, spans, out[row:])
        if self.queue.plain:
            both = (
                self.chunks.prepare(q, k_cache, v_cache, table, chunks, tiles, out, slabs=slabs, splits=splits),
                self.decodes.prepare(*its),
            )
            return self.queue.captured(both)
        args = self.chunks.arguments(q, k_cache, v_cache, table, chunks, tiles, out, splits)
        one_q, _, _, _, *ones, _, scale = self.decodes.arguments(*its)
        tile_count, item_count = int(tiles.shape[0]), int(items.shape[0])
        args = (*args[:-1], tile_count, splits, one_q, *ones, item_count, scale)
        heads, group = self.chunks.heads, self.chunks.heads // self.chunks.kv_heads
        resident = whole("resident", resident, high=3)
        macros = self.chunks.macros(slabs, splits) | {"RESIDENT": resident, "MIXED": 1}
        kernel = self.queue.kernel("mixed_attention", self.chunks.kind, **macros)
        grid = (heads, tile_count * splits + -(-item_count // group))
        return self.queue.prepare(kernel, grid, 32 * WARPS, args, shared_bytes=self.chunks.shared_bytes(slabs))
