"""How long a launch takes: warm, one by one, many times, and the median of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.gpu.device import Device
from course.settings import real, whole


@dataclass(frozen=True)
class Timing:
    """Seconds of one launch: the median, the 10th and 90th percentile, and of how many launches."""

    seconds: float
    low: float
    high: float
    launches: int


def measure(
    device: Device, launch: Callable[[], Any], *, launches: int = 200, budget: float = 1.0, warm: int = 3
) -> Timing:
    """Time `launch` on `device`: by events on a GPU, by the clock on a CPU.

    launches: at most so many are timed. budget: seconds after which no further one starts, so that a slow kernel is
    timed a few times only, but always once. warm: launches before, never timed; a first one compiles, loads and
    allocates. The CPU needs but one warm launch where that alone uses the budget up.

    Raises:
        ValueError: a setting of no use.
        KernelError: the launch failed.
    """
    launches, warm = whole("launches", launches, high=1_000_000), whole("warm", warm, high=1_000)
    budget = real("budget", budget, low=0)
    watch = device.stopwatch()
    began = time.perf_counter()
    for _ in range(warm):
        watch.time(launch)
        if time.perf_counter() - began > budget / 2:
            break
    found: list[float] = []
    while len(found) < launches and (not found or time.perf_counter() - began < budget):
        found.append(watch.time(launch)[0])
    low, middle, high = np.percentile(found, (10, 50, 90)).tolist()
    return Timing(middle, low, high, len(found))
