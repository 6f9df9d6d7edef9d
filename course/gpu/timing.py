"""How long a launch takes: warm, one by one, many times, and the median of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.base.settings import real, whole
from course.gpu.device import Device
from course.gpu.ops.queue import Queue

Launch = Callable[[], Any]


@dataclass(frozen=True)
class Timing:
    """Seconds of one launch: the median, the 10th and 90th percentile, and of how many launches.

    gap, longest_gap: seconds from the end of one launch to the beginning of the next, median and maximum: what the
    device waits for the program that launches. NaN if there was one launch.
    """

    seconds: float
    low: float
    high: float
    launches: int
    gap: float
    longest_gap: float


def measure(
    where: Device | Queue,
    launch: Launch | Sequence[Launch],
    *,
    launches: int = 200,
    max_seconds: float = 1.0,
    warm: int = 3,
    least: int = 1,
    before: Launch | None = None,
) -> Timing:
    """Time `launch` where it goes, a device or a queue: by events on a GPU, by the clock on a CPU.

    launch: several are one launch in parts, whose seconds add up. launches: at most so many are timed. max_seconds:
    after which no further one starts, so that a slow kernel is timed a few times only, but always `least` times. warm:
    launches before that are not counted, since a first one loads and allocates; one is enough if it takes half of
    max_seconds. before: is launched before each, and not timed: for example what fills the caches with something else.

    Raises ValueError: a setting of no use. Raises KernelError: the launch failed.
    """
    steps = measuring(where, launch, launches=launches, max_seconds=max_seconds, warm=warm, least=least, before=before)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def measuring(
    where: Device | Queue,
    launch: Launch | Sequence[Launch],
    *,
    launches: int,
    max_seconds: float,
    warm: int,
    least: int = 1,
    before: Launch | None = None,
) -> Generator[None, None, Timing]:
    """The same in pieces: yields after each part of a launch, and returns the timing."""
    launches, warm = whole("launches", launches, high=1_000_000), whole("warm", warm, high=1_000)
    least, max_seconds = whole("least", least, high=launches), real("max_seconds", max_seconds, low=0)
    watch, parts = where.stopwatch(), [launch] if callable(launch) else list(launch)
    spent = 0.0

    def timed() -> Generator[None, None, tuple[float, float]]:
        nonlocal spent
        found = []
        for part in parts:
            began = time.perf_counter()
            if before is not None:
                before()
            found.append(watch.time(part))
            spent += time.perf_counter() - began
            yield
        return sum(seconds for seconds, _ in found), max(gap for _, gap in found)

    for _ in range(warm):
        yield from timed()
        if spent > max_seconds / 2:
            break
    samples: list[tuple[float, float]] = []
    while len(samples) < launches and (len(samples) < least or spent < max_seconds):
        samples.append((yield from timed()))
    seconds, gaps = np.array(samples).T
    low, middle, high = np.percentile(seconds, (10, 50, 90)).tolist()
    return Timing(middle, low, high, len(samples), float(np.median(gaps)), float(gaps.max()))
