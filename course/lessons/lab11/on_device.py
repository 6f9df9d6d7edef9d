"""What lab 11 launches: attention of 32 prompts as a rectangle, in buckets, packed, and one launch each.

On a GPU all are the course's kernel: prompts lie behind one another in the rows of q, and their first rows are its
offsets. A rectangle is a batch whose prompts are all as long as the longest. On a CPU NumPy computes one head.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from course import gpu
from course.gpu.errors import FAILS, not_measured
from course.gpu.ops import fill, numbers, read_probe, work_list
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.ops.prefill_attention import PrefillAttention, checked_chunks
from course.gpu.ops.queue import Queue
from course.gpu.queues import queue
from course.gpu.timing import Launch, Timing, measuring
from course.lessons.lab11 import batch
from course.lessons.lab11.batch import LAYOUTS, PACKED
from course.lm.threads import one_thread

KIND, BLOCK = "bf16", 16
SIZES: dict[str, Any] = {"heads": 32, "kv_heads": 8, "width": 128}
LEAST, LAUNCHES, ENOUGH = 5, 25, 0.2
"""Launches of which the median is taken, at least and at most, and seconds after which no further one begins."""
SHORTER, HEAD, AT_ONCE = 8, 64, 4
"""On a CPU prompts are so many times shorter, have one head of so many numbers, and so many are a part of a launch."""
CPU_LAYOUTS = LAYOUTS[:-1]
"""What differs on a CPU, where a launch is a call."""
FILLER = 28_672 * 4_096 // 2
"""Words of a matrix that is read before each launch, as a step reads its weights: the second cache then holds those."""

Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Here:
    """What was measured on the device of that name: seconds by layout. shorter: how many times shorter prompts were."""

    where: str
    times: dict[str, float] = field(default_factory=dict)
    shorter: int = 1
    warnings: tuple[str, ...] = ()


def offsets(prompts: Sequence[int]) -> list[int]:
    """The first row of each prompt in a packed batch, and one behind the last row of all."""
    return [0, *accumulate(prompts)]


class Card:
    """Launches attention on a queue, with memory for so many rows that all launches share.

    rows: of the largest launch. Raises KernelError and MemoryError.
    """

    def __init__(self, work: Queue, rows: int, sizes: dict[str, Any] = SIZES) -> None:
        self.work, self.rows, device = work, rows, work.device
        self._room = [device.empty((rows, sizes["heads"], sizes["width"]), numbers.dtype(KIND)) for _ in range(2)]
        self.blocks = -(-rows // BLOCK) + 2 * batch.REQUESTS
        shape = (self.blocks, sizes["kv_heads"], BLOCK, sizes["width"])
        self.k, self.v = (device.empty(shape, numbers.dtype(KIND)) for _ in range(2))
        self._fill((self._room[0], self.k, self.v))
        self._prompts = PrefillAttention(work, max_parts=256, kind=KIND, **sizes)
        self._decodes = DecodeAttention(work, max_sequences=batch.REQUESTS, max_items=4_096, kind=KIND, **sizes)
        self._order = np.random.default_rng(0).permutation(self.blocks).astype(np.int32)

    def _fill(self, arrays: Sequence[Any]) -> None:
        for seed, one in enumerate(arrays):
            fill.prepare(self.work, one, bound=3**0.5, seed=seed, kind=KIND)()
        self.work.wait()

    def write(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
        """Put numbers of one's own into q, k and v, for tests that look at the rows."""
        for there, values in ((self._room[0], q), (self.k, k), (self.v, v)):
            self.work.write(there, values)

    def out(self, rows: int) -> np.ndarray:
        """The first rows that the latest launch wrote, float32."""
        self.work.wait()
        return numbers.decode(self.work.device.to_numpy(self._room[1][:rows]), KIND)

    def table(self, lengths: Sequence[int], first: int = 0) -> np.ndarray:
        """Shuffled blocks of each sequence, from that one of the order on."""
        need = [-(-n // BLOCK) for n in lengths]
        found, at = np.zeros((len(need), max(need)), np.int32), first
        for row, many in zip(found, need, strict=True):
            row[:many] = self._order[(at + np.arange(many)) % self.blocks]
            at += many
        return found

    def prompts(self, groups: Groups) -> Launch:
        """Attention of prompts of these lengths, a launch for each group."""
        return self._together(self._prompt_launch, groups, [sum(group) for group in groups])

    def decodes(self, groups: Groups) -> Launch:
        """Attention of one new token each, behind so many tokens, a launch for each group."""
        return self._together(self._decode_launch, groups, [len(group) for group in groups])

    def _together(self, launch: Callable[..., Launch], groups: Groups, rows: Sequence[int]) -> Launch:
        blocks = [sum(-(-n // BLOCK) for n in group) for group in groups]
        found = [launch(*one) for one in zip(groups, offsets(rows), offsets(blocks), strict=False)]
        return self.work.captured(found)

    def _prompt_launch(self, group: Sequence[int], row: int, block: int) -> Launch:
        op, put = self._prompts, self.work.device.to_device
        rows = sum(group)
        q, out = (one[row : row + rows] for one in self._room)
        table = self.table(group, block)
        listed = [(first, n, 0, i) for i, (first, n) in enumerate(zip(offsets(group), group, strict=False))]
        checked_chunks(listed, rows, table.shape[1])
        slabs = op.slabs(listed)
        how: dict[str, Any] = {"slabs": slabs, "splits": op.splits(listed, slabs)}
        given = put(table), put(np.array(listed, np.int32)), put(op.tiles(listed, slabs))
        return op.prepare(q, self.k, self.v, *given, out, **how)

    def _decode_launch(self, group: Sequence[int], row: int, block: int) -> Launch:
        op, put, lengths = self._decodes, self.work.device.to_device, np.array(group, np.int32)
        q, out = (one[row : row + len(group)] for one in self._room)
        warps, size = op.plan(lengths)
        cut = work_list.cut(lengths, size)
        given = put(self.table(group, block)), put(lengths), put(cut.items), put(cut.spans)
        return op.prepare(q, self.k, self.v, *given, out, warps=warps)


def filler(work: Queue) -> Launch:
    """Reads a matrix of 235 MB."""
    words = work.device.to_device(np.zeros(FILLER, np.uint32))
    return read_probe.prepare(work, words, work.device.empty((32 * work.multiprocessors,), np.uint32))


class Bench:
    """Launches every layout of a batch of prompts, with every move."""

    def __init__(self, device: gpu.Device | None, max_seconds: float) -> None:
        self._device, self._max_seconds = device, max_seconds
        self._work: Queue | None = None
        self._card: Card | None = None
        self._before: Launch | None = None

    def measuring(self, mix: str, spread: float, mean: int) -> Iterator[Here | None]:
        """More with each value; None while a launch goes on."""
        yield Here("this machine" if self._device is None else self._device.name)
        try:
            with one_thread():
                self._device = self._device or gpu.device()
                self._work = self._work or queue(self._device)
                on_gpu, times = self._device.is_gpu, {}
                shorter = 1 if on_gpu else SHORTER
                prompts = batch.lengths(mix, spread, mean // shorter)
                name = self._device.name if on_gpu else f"{self._device.name}, NumPy"
                for layout in LAYOUTS if on_gpu else CPU_LAYOUTS:
                    yield None
                    timing = yield from self._timed(self._launches(prompts, layout))
                    times[layout] = timing.seconds
                    yield Here(name, dict(times), shorter)
        except FAILS as error:
            yield Here("", warnings=(not_measured(error),))

    def _launches(self, prompts: Sequence[int], layout: str) -> Launch | Sequence[Launch]:
        groups = batch.launches(prompts, layout)
        assert self._device is not None and self._work is not None
        if not self._device.is_gpu:
            return in_numpy(groups, layout)
        rows = max(batch.tokens(batch.launches(prompts, each)) for each in LAYOUTS)
        if self._card is None or self._card.rows < rows:
            self._card = None  # frees the smaller one first
            self._card = Card(self._work, rows)
        self._before = self._before or filler(self._work)
        return self._card.prompts(groups)

    def _timed(self, launch: Launch | Sequence[Launch]) -> Generator[None, None, Timing]:
        assert self._work is not None
        return measuring(
            self._work, launch, launches=LAUNCHES, max_seconds=self._max_seconds, warm=1, least=LEAST,
            before=self._before,
        )  # fmt: skip


def in_numpy(groups: Groups, layout: str) -> list[Launch]:
    """Causal attention of one head in float32: prompts of a group side by side, or each from its offset to the next.

    Side by side they are one array and equally long, which is what needs padding.
    """
    rng = np.random.default_rng(0)
    found: list[Launch] = []
    for group in groups:
        given = rng.standard_normal((3, sum(group), HEAD), dtype=np.float32)
        if layout == PACKED:
            found += [partial(attend, *given[:, a:b]) for a, b in pairwise(offsets(group))]
        else:
            square = given.reshape(3, len(group), -1, HEAD)
            found += [partial(attend, *square[:, at : at + AT_ONCE]) for at in range(0, len(group), AT_ONCE)]
    return found


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention of each token to itself and to those before it. q, k, v: (..., tokens, width)."""
    scores = q @ k.swapaxes(-1, -2)
    scores *= np.float32(q.shape[-1] ** -0.5)
    scores += _mask(q.shape[-2])
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    return scores @ v / scores.sum(-1, keepdims=True)


@lru_cache(maxsize=64)
def _mask(tokens: int) -> np.ndarray:
    """What hides the tokens behind each one."""
    return np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)
