"""What lab 06 launches: the product and the attention of a step's decodes and of its prompt, apart and together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from course import gpu
from course.gpu.errors import FAILS, not_measured
from course.gpu.ops import numbers, product, work_list
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.ops.mixed_attention import MixedAttention
from course.gpu.ops.prefill_attention import PrefillAttention, checked_chunks
from course.gpu.ops.queue import Queue
from course.gpu.queues import queue
from course.gpu.timing import Launch, Timing, measuring
from course.lm.threads import one_thread

PRODUCT, ATTENTION = WHAT = ("matrix product", "attention")
DECODES, PROMPT, TOGETHER = WAYS = ("decodes", "prompt", "together")
KIND = "bf16"
SIZES: dict[str, Any] = {"heads": 32, "kv_heads": 8, "width": 128}
COLUMNS, ROWS = 4_096, {True: 28_672, False: 4_096}
"""Of the matrix, on a GPU or not: larger than the caches."""
CONTEXT, CACHED, BLOCK = 1_024, 2_048, 16
"""Tokens of each decode's sequence, those of the prompt computed in earlier steps, and those of a KV block."""
LEAST, LAUNCHES, ENOUGH = 3, 50, 0.2
"""Launches of which the median is taken, at least and at most, and seconds after which no further one begins."""
PART = 512  # rows of the matrix that a CPU multiplies at once, so that a move need not wait for a whole launch

Times = dict[str, dict[str, float]]
"""Seconds by what was launched, and of which rows."""


@dataclass(frozen=True)
class Here:
    """What was measured on the device of that name."""

    where: str
    times: Times = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Bench:
    """Launches the decodes alone, the prompt alone, and both together, with every move."""

    def __init__(self, device: gpu.Device | None, max_seconds: float) -> None:
        self._device, self._max_seconds = device, max_seconds
        self._made: tuple[Queue, Callable[[int], Launch | Sequence[Launch]]] | None = None

    def __call__(self, decodes: int, chunk: int) -> Here:
        """Everything at this setting."""
        *_, found = filter(None, self.measuring(decodes, chunk))
        return found

    def measuring(self, decodes: int, chunk: int) -> Iterator[Here | None]:
        """More with each value; None while a launch goes on."""
        times: Times = {}
        yield Here("this machine" if self._device is None else _name(self._device))
        try:
            with one_thread():
                self._made = self._made or _made(self._device or gpu.device())
                work, multiply = self._made
                self._device = work.device
                for way, rows in zip(WAYS, (decodes, chunk, decodes + chunk), strict=True):
                    yield None
                    timing = yield from self._timed(work, multiply(rows))
                    times.setdefault(PRODUCT, {})[way] = timing.seconds
                    yield Here(_name(self._device), {what: dict(of) for what, of in times.items()})
                for way, launch in _attention(work, decodes, chunk) if work.device.is_gpu else ():
                    timing = yield from self._timed(work, launch)
                    times.setdefault(ATTENTION, {})[way] = timing.seconds
                yield Here(_name(self._device), times)
        except FAILS as error:
            yield Here("", warnings=(not_measured(error),))

    def _timed(self, work: Queue, launch: Launch | Sequence[Launch]) -> Generator[None, None, Timing]:
        """LEAST launches, and more as long as they begin in max_seconds, after one that is not counted."""
        return measuring(work, launch, launches=LAUNCHES, max_seconds=self._max_seconds, warm=1, least=LEAST)


def _name(device: gpu.Device) -> str:
    return device.name if device.is_gpu else f"{device.name}, NumPy"


def _made(device: gpu.Device) -> tuple[Queue, Callable[[int], Launch | Sequence[Launch]]]:
    """A queue, and from a number of rows to the launch of their product with one matrix."""
    work, rng, rows = queue(device), np.random.default_rng(0), ROWS[device.is_gpu]
    if not device.is_gpu:
        w = rng.standard_normal((rows, COLUMNS), dtype=np.float32)

        def in_numpy(many: int) -> Sequence[Launch]:
            x = rng.standard_normal((many, COLUMNS), dtype=np.float32)
            parts = [w[start : start + PART] for start in range(0, rows, PART)]
            return [partial(np.matmul, x, part.T, out=np.empty((many, len(part)), np.float32)) for part in parts]

        return work, in_numpy
    piece = numbers.encode(rng.standard_normal((rows // 8, COLUMNS), dtype=np.float32), KIND)
    weights = device.to_device(np.tile(piece, (8, 1)))  # to draw them all would take seconds

    def multiply(many: int) -> Launch:
        x = device.to_device(numbers.encode(rng.standard_normal((many, COLUMNS), dtype=np.float32), KIND))
        return product.prepare(work, x, weights, device.empty((many, rows), numbers.dtype(KIND)), kind=KIND)

    return work, multiply


def _attention(work: Queue, decodes: int, chunk: int) -> Iterator[tuple[str, Launch]]:
    """Decodes alone, the prompt's chunk alone, and both in one launch, over the same blocks. Raises KernelError."""
    rng, put = np.random.default_rng(0), work.device.to_device
    lengths, listed = np.full(decodes, CONTEXT, np.int32), [(0, chunk, CACHED, 0)]
    its, each = -(-(CACHED + chunk) // BLOCK), CONTEXT // BLOCK
    blocks = its + decodes * each
    table = np.zeros((1 + decodes, max(its, each)), np.int32)
    order = rng.permutation(blocks).astype(np.int32)
    table[0, :its], table[1:, :each] = order[:its], order[its:].reshape(decodes, each)
    cache = numbers.encode(rng.standard_normal((64, SIZES["kv_heads"], BLOCK, SIZES["width"]), np.float32), KIND)
    cache = np.concatenate([cache] * -(-blocks // 64))[:blocks]
    q = put(numbers.encode(rng.standard_normal((chunk + decodes, SIZES["heads"], SIZES["width"]), np.float32), KIND))
    k, v, on_it, tokens = put(cache), put(cache), put(table), put(lengths)
    out = work.device.empty(q.shape, numbers.dtype(KIND))
    one = DecodeAttention(work, max_sequences=decodes, max_items=4_096, kind=KIND, **SIZES)
    many = PrefillAttention(work, max_parts=256, kind=KIND, **SIZES)
    both = MixedAttention(one, many)
    chunks = put(checked_chunks(listed, chunk, table.shape[1]))
    warps, size = one.plan(lengths)
    cut = work_list.cut(lengths, size)
    yield (
        DECODES,
        one.prepare(q[chunk:], k, v, on_it[1:], tokens, put(cut.items), put(cut.spans), out[chunk:], warps=warps),
    )
    slabs = many.slabs(listed)
    how: dict[str, Any] = {"slabs": slabs, "splits": many.splits(listed, slabs)}
    yield PROMPT, many.prepare(q, k, v, on_it, chunks, put(many.tiles(listed, slabs)), out, **how)
    slabs, cut = both.slabs(listed, lengths), work_list.cut(lengths, both.plan(lengths))
    parts = put(many.tiles(listed, slabs)), tokens, put(cut.items), put(cut.spans)
    how = {"slabs": slabs, "splits": both.splits(listed, slabs)}
    yield TOGETHER, both.prepare(q, k, v, on_it, chunks, *parts, out, **how)
