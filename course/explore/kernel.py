"""An explorer that launches: the decode-step kernel on the device at hand, beside a recording of a real card."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go

from course import gpu
from course.explore import Explorer, Slider
from course.explore.live import LiveExplorer
from course.figures import kernel as figures
from course.gpu import record
from course.gpu.errors import FAILS, not_measured
from course.gpu.recordings import Curve, DecodeProfile, decode_step

CONTROLS = (
    Slider("work", "Work", record.WORK[0], record.WORK[-1], 4, 16_384, "terms a sequence", log=True),
    Slider("threads", "Threads", record.THREADS[0], record.THREADS[-1], 2, 256, "a block", log=True),
    Slider("batch", "Batch", record.BATCH[0], record.BATCH[-1], 2, 16, "sequences", log=True),
)


@dataclass(frozen=True)
class Measurement:
    """Seconds of a step for some batch sizes, and of an empty launch, on the device of that name."""

    where: str
    seconds: Mapping[int, float]
    empty_seconds: float = float("nan")
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Steps:
    """One setting: the recorded curve, and what was measured here."""

    work: int
    threads: int
    batch: int
    recorded: Curve
    measured: Measurement | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept the kernel from running here, or from running with this batch."""
        if self.measured is None or self.measured.warnings or self.batch in self.measured.seconds:
            return self.measured.warnings if self.measured else ()
        largest = max(self.measured.seconds, default=0)
        return (f"{self.batch:,} sequences would take too long here: the largest batch measured is {largest:,}.",)


def kernel_explorer(
    device: gpu.Device | None = None, recording: str = "h100_decode_step", *, max_seconds: float = 0.6
) -> Explorer:
    """Sliders for work, threads and batch over the live kernel, with the recorded curve beside what is measured here.

    device: where to run; the best there is, found when the explorer is shown. max_seconds: of measuring for each
    pair of work and threads; on a CPU large batches fall out of it, and the explorer says so. A device that fails
    leaves the recorded curve and a sentence. As text the explorer is the recorded part alone, which is the same on
    every machine.

    Raises ValueError: no such recording.
    """
    profile = decode_step(recording)
    bench = _Bench(device, max_seconds)

    def recorded(work: int, threads: int, batch: int) -> Steps:
        return Steps(work, threads, batch, profile.at(work, threads))

    def both(work: int, threads: int, batch: int) -> Steps:
        return replace(recorded(work, threads, batch), measured=bench(work, threads))

    def figure(steps: Steps) -> go.Figure:
        live = steps.measured
        points = (tuple(live.seconds), tuple(live.seconds.values())) if live else ((), ())
        return figures.steps(
            steps.recorded, profile.empty_seconds, _short(profile.card), steps.batch, points, "this machine"
        )

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": figure,
        "summary": lambda steps: _rows(steps, profile),
        "title": "A decode step over the batch",
        "badge": profile.badge,
    }
    return LiveExplorer(Explorer(recorded, **shared), both, **shared)


class _Bench:
    """Measures each pair of work and threads once; moving the batch only looks at another point of the same curve."""

    def __init__(self, device: gpu.Device | None, max_seconds: float) -> None:
        self._device, self._max_seconds = device, max_seconds
        self._known: dict[tuple[int, int], Measurement] = {}

    def __call__(self, work: int, threads: int) -> Measurement:
        if (work, threads) not in self._known:
            self._known[work, threads] = self._measure(work, threads)
        return self._known[work, threads]

    def _measure(self, work: int, threads: int) -> Measurement:
        found: dict[int, float] = {}
        try:
            device = self._device = self._device or gpu.device()
            step = gpu.DecodeStep(device, work, threads, max(record.BATCH))
            began = time.perf_counter()  # the first time, making the step has compiled the kernel
            empty = step.time_empty(1, launches=30, max_seconds=self._max_seconds / 10).seconds
            for batch in record.BATCH:
                left = max(0.0, self._max_seconds - (time.perf_counter() - began))
                # Two launches at least, one of them warm; on a CPU twice the batch takes twice as long.
                if found and 4 * max(found.values()) > left:
                    break
                found[batch] = step.time(batch, launches=20, max_seconds=left / 6).seconds
        except FAILS as error:
            return Measurement("", {}, warnings=(not_measured(error),))
        return Measurement(f"{device.name}, {gpu.WORDS[device.kind]}", found, empty)


def _rows(steps: Steps, profile: DecodeProfile) -> list[tuple[str, ...]]:
    """Recorded numbers, and in a second column those of this machine where it was measured."""
    columns = [_column(dict(zip(steps.recorded.batch.tolist(), steps.recorded.seconds.tolist(), strict=True)),
                       profile.empty_seconds, steps.batch)]  # fmt: skip
    heads = ["recorded: " + _short(profile.card)]
    if steps.measured is not None:
        heads.append("measured here" + (f": {steps.measured.where}" if steps.measured.where else ""))
        columns.append(_column(steps.measured.seconds, steps.measured.empty_seconds, steps.batch))
    labels = ("step time", "an empty launch", "throughput", f"gain over batch 1 (at most {steps.batch:,})")
    return [("", *heads), *((label, *values) for label, *values in zip(labels, *columns, strict=True))]


def _column(seconds: Mapping[int, float], empty: float, batch: int) -> tuple[str, str, str, str]:
    launch = "-" if empty != empty else f"{1e6 * empty:,.1f} us"
    if batch not in seconds:
        return ("-", launch, "-", "-")
    took = seconds[batch]
    shown = f"{1e6 * took:,.1f} us" if took < 1e-3 else f"{1e3 * took:,.2f} ms"
    gain = batch * seconds[1] / took
    return (shown, launch, f"{float(f'{batch / took:.3g}'):,.0f} tokens/s", f"{gain:,.1f}x")


def _short(card: str) -> str:
    """NVIDIA H100 80GB HBM3 is H100 on a label."""
    words = card.split()
    return next((word for word in words if any(c.isdigit() for c in word)), card)
