"""Attention of a prompt chunk beside decodes, launched in every way: what `kernels.py --only mixed` times."""

from __future__ import annotations

from typing import Any

import numpy as np

from course import gpu
from course.gpu.ops import numbers, work_list
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.ops.mixed_attention import MixedAttention
from course.gpu.ops.prefill_attention import PrefillAttention
from course.gpu.queues import queue

MIXES = (
    *((512, 0, 32, 1024), (512, 2048, 32, 1024), (256, 2048, 64, 1024), (512, 2048, 32, 4096)),
    *((128, 2048, 32, 1024), (2048, 0, 32, 2048), (512, 7680, 64, 2048)),
)
"""(tokens of a chunk, those cached before it, decodes, tokens of each)"""
SIZES: dict[str, Any] = {"heads": 32, "kv_heads": 8, "width": 128}


class Mix:
    """One of them: a launch of each kind for each of up to four sets of blocks, which lie past the second cache."""

    def __init__(self, b: Any, caches: Any, tokens: int, cached: int, decodes: int, length: int) -> None:
        self.b, self.caches, self.tokens, self.cached, self.length = b, caches, tokens, cached, length
        self.chunk_op = PrefillAttention(b.q, max_parts=256, **SIZES)
        self.decode_op = DecodeAttention(b.q, max_items=4096, **SIZES)
        self.both = MixedAttention(self.decode_op, self.chunk_op)
        self.put = b.q.device.to_device
        self.lengths, self.listed = np.full(decodes, length), [(0, tokens, cached, 0)]
        self.chunks, self.its_length = (
            self.put(np.array(self.listed, np.int32)),
            self.put(self.lengths.astype(np.int32)),
        )
        self.q, self.apart_out, self.one_out = (b.random(tokens + decodes, 32, 128, seed=s) for s in (5, 6, 7))
        self.tables = caches.tables(np.array([tokens + cached, *self.lengths]), most=4)

    def words(self) -> dict[str, int]:
        """What it is."""
        return {"chunk": self.tokens, "cached": self.cached, "decodes": len(self.lengths), "length": self.length}

    def chunk(self) -> list[Any]:
        """The chunk alone."""
        op, caches = self.chunk_op, self.caches
        slabs = op.slabs(self.listed)
        tiles, splits = self.put(op.tiles(self.listed, slabs)), op.splits(self.listed, slabs)
        return [
            op.prepare(
                self.q, caches.k, caches.v, table, self.chunks, tiles, self.apart_out, slabs=slabs, splits=splits
            )
            for table in self.tables
        ]

    def decodes(self, op: DecodeAttention) -> list[Any]:
        """The decodes alone, on the queue of this operation."""
        warps, blocks = op.plan(self.lengths)
        cut = work_list.cut(self.lengths, blocks)
        items, spans = self.put(cut.items), self.put(cut.spans)
        q, out, caches = self.q[self.tokens :], self.apart_out[self.tokens :], self.caches
        return [
            op.prepare(q, caches.k, caches.v, table[1:], self.its_length, items, spans, out, warps=warps)
            for table in self.tables
        ]

    def one(self, slabs: int = 0, splits: int = 0, resident: int = 2, blocks: int = 0) -> list[Any]:
        """Both in one launch, as planned or as said."""
        both, caches = self.both, self.caches
        slabs = slabs or both.slabs(self.listed, self.lengths)
        splits = splits or both.splits(self.listed, slabs)
        cut = work_list.cut(self.lengths, blocks or both.plan(self.lengths))
        its = tuple(self.put(one) for one in (self.chunk_op.tiles(self.listed, slabs), cut.items, cut.spans))
        how = {"slabs": slabs, "splits": splits, "resident": resident}
        return [
            both.prepare(
                self.q, caches.k, caches.v, table, self.chunks, its[0], self.its_length, *its[1:], self.one_out, **how
            )
            for table in self.tables
        ]

    def branches(self) -> list[Any]:
        """The two launches on two branches of a graph."""
        other = queue(gpu.device("cuda"))
        fork, join = (self.b.q.cupy.cuda.Event(disable_timing=True) for _ in range(2))

        def beside(here: Any, there: Any) -> Any:
            def launch() -> None:
                fork.record(self.b.q.stream)
                other.stream.wait_event(fork)
                there()
                here()
                join.record(other.stream)
                self.b.q.stream.wait_event(join)

            return launch

        others = self.decodes(DecodeAttention(other, max_items=4096, **SIZES))
        return [beside(here, there) for here, there in zip(self.chunk(), others, strict=True)]

    def seconds(self) -> dict[str, float]:
        """Seconds of each way."""
        chunk, decodes = self.chunk(), self.decodes(self.decode_op)
        two = [launch for pair in zip(chunk, decodes, strict=True) for launch in pair]
        found = {"chunk": self.b.each(chunk), "decodes": self.b.each(decodes), "two": 2 * self.b.each(two)}
        return found | {"branches": self.b.each(self.branches()), "one": self.b.each(self.one())}

    def apart(self, **how: int) -> float:
        """How far the rows of one launch are from those of two, as a share of them."""
        self.one_out.fill(0x7FC0)  # NaN
        self.b.q.wait()
        for launch in (self.chunk()[0], self.decodes(self.decode_op)[0], self.one(**how)[0]):
            launch()
        self.b.q.wait()
        right, found = (numbers.decode(out.get(), "bf16") for out in (self.apart_out, self.one_out))
        return float(np.linalg.norm(found - right) / np.linalg.norm(right))
