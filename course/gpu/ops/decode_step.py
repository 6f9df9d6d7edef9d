"""The decode step of kernels/decode_step.cu: a toy of 8 multiply-adds a term, launched, timed, and computed exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course.base.settings import quote, whole
from course.gpu.device import MAX_THREADS, Device
from course.gpu.timing import Timing, measure

MAX_WORK = 2**24
"""Above it float32 no longer counts in ones, and i + 1 would not be i + 1."""
MAX_BATCH = 65_536
SCALE = float(np.float32(1.000173))
TERMS = 1 << 18  # computed at once: 1 MB, which stays in the cache


def checked_threads(threads: Any, name: str = "threads") -> int:
    """`threads` as an int; ValueError unless it is a power of two from 1 to 1024."""
    count = whole(name, threads, high=MAX_THREADS)
    if count & (count - 1):
        raise ValueError(f"{name} must be a power of two from 1 to 1,024, not {quote(threads)}")
    return count


class DecodeStep:
    """One step for a batch of sequences, one block a sequence: a toy whose time behaves like a real one's.

    device: where to run. work: terms a sequence, each of 8 multiply-adds. threads: a block, a power of two.
    max_batch: the most sequences that will be asked for.

    Raises ValueError: a setting outside of what the kernel can do, before anything is launched.
    """

    def __init__(self, device: Device, work: int = 16_384, threads: int = 256, max_batch: int = 16) -> None:
        self.device = device
        self.work = whole("work", work, high=MAX_WORK)
        self.threads = checked_threads(threads)
        self.max_batch = whole("max_batch", max_batch, high=MAX_BATCH)
        self._out = device.empty(self.max_batch, np.float32)
        self._step = device.kernel("decode_step")
        self._empty = device.kernel("empty")
        self._prepared: dict[tuple[str, int], Callable[[], None]] = {}

    def prepare(self, batch: int) -> Callable[[], None]:
        """One step for `batch` sequences, ready to be launched; on a GPU it may still run when the call returns."""
        return self._once("step", batch)

    def prepare_empty(self, batch: int) -> Callable[[], None]:
        """A launch of the same size that does nothing."""
        return self._once("empty", batch)

    def result(self, batch: int) -> np.ndarray:
        """What one step computes, float32, shape (batch,)."""
        self.prepare(batch)()
        return self.device.to_numpy(self._out)[:batch]

    def time(self, batch: int, **how: Any) -> Timing:
        """Seconds of one step (see `measure`)."""
        return measure(self.device, self.prepare(batch), **how)

    def time_empty(self, batch: int, **how: Any) -> Timing:
        """Seconds of a launch of the same size that does nothing: what of a step is only the launch."""
        return measure(self.device, self.prepare_empty(batch), **how)

    def _once(self, what: str, batch: int) -> Callable[[], None]:
        key = what, whole("batch", batch, high=self.max_batch)
        if key not in self._prepared:
            if what == "step":
                ready = self._step.prepare(key[1], self.threads, (self._out, self.work), 4 * self.threads)
            else:
                ready = self._empty.prepare(key[1], self.threads)
            self._prepared[key] = ready
        return self._prepared[key]


class LiveStep:
    """Runs and times one step after the other, for a loop that asks for seconds: `LiveStep(step)(batch)`.

    gaps: seconds from the end of each step to the beginning of the next, which a timeline of the device would show.
    """

    def __init__(self, step: DecodeStep, warm: int = 10) -> None:
        self.gaps: list[float] = []
        self._step = step
        self._watch = step.device.stopwatch()
        for batch in (1, step.max_batch):
            step.time(batch, launches=1, warm=warm, max_seconds=0.2)

    def __call__(self, batch: int) -> float:
        """Launch a step of this batch and return its seconds."""
        seconds, gap = self._watch.time(self._step.prepare(batch))
        self.gaps.append(gap)
        return seconds


def twin(grid: tuple[int, int, int], block: tuple[int, int, int], out: np.ndarray, work: np.int32) -> None:
    """The kernel in NumPy: the terms of each thread are added in its order, those of the threads by halving."""
    threads, scale, k = block[0], np.float32(1.000173), np.arange(8, dtype=np.float32)
    rows = max(1, TERMS // (8 * threads))
    for sequence in range(grid[0]):
        sums = np.zeros(threads, dtype=np.float32)
        for first in range(0, int(work), rows * threads):
            i = np.arange(first, min(first + rows * threads, int(work)), dtype=np.int32)
            x = scale * (i + 1).astype(np.float32) + np.float32(0.5) * np.float32(sequence)
            terms = np.zeros(-(-len(i) // threads) * threads, dtype=np.float32)
            np.sum(x[:, None] * (x[:, None] + k), axis=1, out=terms[: len(i)])
            sums += terms.reshape(-1, threads).sum(axis=0)
        while len(sums) > 1:
            sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
        out[sequence] = sums[0]


def reference(batch: int, work: int) -> np.ndarray:
    """What the step should compute, in float64, shape (batch,): sum of 8 x^2 + 28 x, x = 1.000173 (i + 1) + s / 2.

    The constant is the float32 closest to 1.000173, as in the kernel.
    """
    x = SCALE * np.arange(1, whole("work", work, high=MAX_WORK) + 1, dtype=np.float64)
    sums = np.empty(whole("batch", batch, high=MAX_BATCH))
    for sequence in range(len(sums)):
        y = x + 0.5 * sequence
        sums[sequence] = 8 * (y @ y) + 28 * y.sum()
    return sums


def tolerance(work: int, threads: int) -> float:
    """The largest relative error that float32 may have here, whatever the device and the order of additions.

    A sum of n positive terms, each exact to m roundings, is exact to (n - 1 + m) u with u = 2^-24 (Higham, Accuracy
    and Stability of Numerical Algorithms, section 4.2). A thread adds 8 ceil(work / threads) terms, the threads are
    halved log2(threads) times; x has 3 roundings and enters twice, x + k and the product have one each.
    """
    return (8 * -(-work // threads) + threads.bit_length() - 1 + 8) * 2.0**-24
