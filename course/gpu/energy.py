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

    From the first to the last move of the counter that was seen: what it shows between two moves is old.
    """
    began, seen = clock(), [(clock(), joules())]
    while seen[-1][0] - began < window:
        run()
        seen.append((clock(), joules()))
    moves = [new for old, new in pairwise(seen) if new[1] != old[1]]
    if len(moves) < 3:
        return None
    (start, low), (end, high) = moves[0], moves[-1]
    return (high - low) / (end - start)
