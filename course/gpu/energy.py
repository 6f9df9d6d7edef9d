"""Watts of a GPU while something runs on it, from the energy counter of NVIDIA's driver (NVML)."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from course.gpu.device import Device

LIBRARY = "libnvidia-ml.so.1"
WINDOW = 0.5  # seconds: the counter moves every 20 to 100 ms, and both ends of a mean are one of its moves
TURN = 0.02  # seconds of work between two looks at it
MOVES, WINDOWS = 3, 4  # of the counter that a mean needs at least, and windows that they are waited for


def counter(device: Device, library: Any = None) -> Callable[[], float] | None:
    """Reads the joules that the GPU has used since its driver was loaded; None where nothing counts them.

    library: NVML, loaded here if not given. The card is found by its address on the bus, since NVML counts cards that
    this process does not see as well.
    """
    address = getattr(device, "bus", "")
    try:
        nvml = ctypes.CDLL(LIBRARY) if library is None else library
    except OSError:
        return None
    card, used = ctypes.c_void_p(), ctypes.c_ulonglong()
    if not address or nvml.nvmlInit_v2():
        return None
    if nvml.nvmlDeviceGetHandleByPciBusId_v2(address.encode(), ctypes.byref(card)):
        return None
    if nvml.nvmlDeviceGetTotalEnergyConsumption(card, ctypes.byref(used)):
        return None

    def joules() -> float:
        nvml.nvmlDeviceGetTotalEnergyConsumption(card, ctypes.byref(used))
        return used.value / 1e3

    return joules


def mean_watts(
    joules: Callable[[], float],
    run: Callable[[], Any],
    window: float = WINDOW,
    clock: Callable[[], float] = time.perf_counter,
) -> float | None:
    """Watts while `run`, which waits for the card, is repeated for `window` seconds; None if the counter hardly moved.

    From the first to the last move of the counter that was seen: what it shows between two moves is old. Where a run
    is so long that too few moves were seen, it goes on for some windows more.
    """
    began, seen, moves = clock(), [(clock(), joules())], 0
    while (spent := seen[-1][0] - began) < window or (moves < MOVES and spent < WINDOWS * window):
        run()
        seen.append((clock(), joules()))
        moves += seen[-1][1] != seen[-2][1]
    ends = [new for old, new in pairwise(seen) if new[1] != old[1]]
    if len(ends) < MOVES:
        return None
    (start, low), (end, high) = ends[0], ends[-1]
    return (high - low) / (end - start)
