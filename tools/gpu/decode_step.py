"""Records how long the decode step takes on a device, over work, threads and batch: for `tests/bench/kernel.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course.gpu.cupy_device import CupyDevice
from course.gpu.device import Device
from course.gpu.ops.decode_step import DecodeStep
from course.gpu.record import provenance

WORK = (1_024, 4_096, 16_384, 65_536, 262_144)
THREADS = (32, 64, 128, 256, 512, 1_024)
BATCH = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024)


def profile(
    device: Device,
    command: str,
    *,
    work: Sequence[int] = WORK,
    threads: Sequence[int] = THREADS,
    batch: Sequence[int] = BATCH,
    launches: int = 200,
    max_seconds: float = 0.2,
    rounds: int = 3,
    told: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """What `course.gpu.recordings` reads: the times of every combination, warm, the median of many launches each.

    command: how this was started, for the provenance. launches, max_seconds: of each combination (see `gpu.measure`).
    rounds: over the whole grid, so that a short disturbance spoils no point. told: is called with a line a round.
    """
    grid = [(terms, count, sequences) for terms in work for count in threads for sequences in batch]
    found: dict[tuple[int, int, int], list[tuple[float, ...]]] = {point: [] for point in grid}
    empty: list[float] = []
    replay = _replay(device)
    for turn in range(rounds):
        for terms in work:
            for count in threads:
                step = DecodeStep(device, terms, count, max(batch))
                for sequences in batch:
                    timing = step.time(sequences, launches=launches, max_seconds=max_seconds, warm=10)
                    kernel = replay(step.prepare(sequences), timing.seconds) if replay else math.nan
                    found[terms, count, sequences].append((timing.seconds, timing.low, timing.high, kernel))
                empty.append(step.time_empty(1, launches=launches, max_seconds=max_seconds, warm=10).seconds)
        told(f"round {turn + 1} of {rounds}")
    columns: dict[str, list[float | None]] = dict(
        zip(("work", "threads", "batch"), map(list, zip(*grid, strict=True)), strict=True)
    )
    for i, name in enumerate(("seconds", "low", "high", "kernel_seconds")):
        columns[name] = [_short(float(np.median([one[i] for one in found[point]]))) for point in grid]
    how = f"events around each launch, warm, median of up to {launches} launches, median of {rounds} rounds"
    if not device.is_gpu:
        how = how.replace("events", "the clock")
    return {
        "kernel": "decode_step",
        "provenance": provenance(device, command) | {"how": how},
        "empty_seconds": _short(float(np.median(empty))),
        "points": columns,
    }


def _replay(device: Device) -> Callable[[Callable[[], Any], float], float] | None:
    """How to time the kernel alone, if the device has a way: as many in a graph as take about 2 ms."""
    if not isinstance(device, CupyDevice) or device.kind != "cuda":
        return None
    return lambda launch, seconds: device.replayed(launch, nodes=min(100, max(5, int(2e-3 / seconds))), replays=10)


def _short(seconds: float) -> float | None:
    return None if math.isnan(seconds) else float(f"{seconds:.4g}")
