"""The benchmark with all its knobs: launched on this machine at every move, beside a recording of the same on an H200.

Steps are launched and timed; arrivals and waits are simulated around them (`course.gpu.bench`). Four criteria decide
whether the benchmark counts as passed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from math import isfinite
from typing import Any

import numpy as np

from course import gpu
from course.engine.serving import Engine, finish, serve
from course.engine.step import StepTimeModel
from course.explore import Choice, Explorer, Slider
from course.explore.live import Measuring, MeasuringExplorer
from course.figures.words import seconds
from course.gpu.bench import Launches, Settings
from course.gpu.errors import FAILS, not_measured
from course.gpu.ops.decode_step import DecodeStep, LiveStep
from course.gpu.recordings import DecodeProfile, decode_step
from course.lessons.lab05 import figures, toy
from course.lessons.lab05.machine import BATCHES, FULL, LONG_MS, SHORT_MS, Compared, Machine
from course.lessons.lab05.served import Served
from course.steptime import files
from course.workload import Workload

RECORDING = "h200_decode_step"
AT_ONCE = 0.01
"""Simulated seconds of the loop between two looks at the sliders; a launch takes no longer than it moves the clock."""
AFFORDABLE = 10.0
"""Seconds of launches for which the loop is run here."""
NREQ = 50

CONTROLS = (
    Choice("loop", "Waits", [("before every step", "note"), ("when idle", "window")], "note"),
    Slider("window_ms", "Window", 0.0, 20.0, 1.0, 6.0, "ms"),
    Slider("rate", "lambda", 20, 160, 20, 80, "requests/s"),
    Slider("bmax", "bmax", 1, 32, 2, 16, log=True),
    Slider("tokens", "tokens", 1, 64, 2, 32, log=True),
    Slider("nreq", "nreq", 25, 200, 25, NREQ),
    Slider("work", "work", 1_024, 65_536, 4, 16_384, "terms", log=True),
    Slider("threads", "threads", 32, 1_024, 2, 256, log=True),
)


@cache
def profile() -> DecodeProfile:
    """The recorded steps."""
    return decode_step(RECORDING)


class Steps(StepTimeModel):
    """The recorded step of one amount of work and threads, over the batch; straight lines between recorded batches."""

    sound = True

    def __init__(self, work: int, threads: int) -> None:
        self.work, self.threads = work, threads
        curve = profile().at(work, threads)
        self._batch, self._seconds = curve.batch, curve.seconds

    def check_settings(self) -> None:
        """See StepTimeModel."""

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        return float(np.interp(decodes + tokens, self._batch, self._seconds))

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        return self.seconds(decodes, 0, 0, 0, 0), 0.0


def windows(asked: Settings) -> tuple[float, ...]:
    """Windows of which the loop is run [ms]: the asked one first."""
    return tuple(dict.fromkeys((asked.window_ms, LONG_MS, SHORT_MS)))


def load(asked: Settings) -> Workload:
    """Its requests: the kernel has no prompts, so each is one token that is there from the start."""
    return Workload(asked.arrivals(), np.ones(asked.nreq, np.int64), np.full(asked.nreq, asked.tokens))


@lru_cache(maxsize=64)
def on_the_card(asked: Settings) -> Machine:
    """The recorded card: its steps, what a simulator makes of them, and seconds and gaps of the defaults."""
    steps = Steps(asked.work, asked.threads)
    found = files.read("decode_step", RECORDING)
    runs = {
        window: Served(window / 1e3, serve(load(asked), toy.LOOPS[asked.loop](asked.bmax, window / 1e3), steps))
        for window in windows(asked)
    }
    fixed = {batch: steps.seconds(batch, 0, 0, 0, 0) for batch in BATCHES}
    return Machine(profile().card, fixed, runs, found["command_seconds"], found["longest_gap_seconds"])


def here(asked: Settings, device: gpu.Device | None = None) -> Iterator[Machine]:
    """What is measured here, more with each: fixed batches first, then the loop, all of it launched now."""
    found, spent = Machine(), 0.0
    try:
        began = time.perf_counter()
        device = device or gpu.device()
        step = DecodeStep(device, asked.work, asked.threads, max(asked.bmax, BATCHES[-1]))
        spent += time.perf_counter() - began
        found = Machine(f"{device.name}, {device.kind}")
        for batch in BATCHES:
            timing = gpu.measure(device, step.prepare(batch), launches=50, max_seconds=0.02, warm=1, least=3)
            gap = found.gap if batch < FULL else float(np.nanmax([found.gap, timing.longest_gap]))
            found = replace(found, steps={**found.steps, batch: timing.seconds}, gap=gap)
            yield found
        least = asked.nreq * asked.tokens * found.steps[BATCHES[-1]] / BATCHES[-1]
        if least > AFFORDABLE:
            said = f"The loop would take {least:.0f} s here: ask for fewer requests, shorter answers or less work."
            yield replace(found, warnings=(said,))
            return
        for window in windows(asked):
            began = time.perf_counter()
            live = Launches(LiveStep(step, warm=1), asked.tokens)
            engine = Engine(toy.LOOPS[asked.loop](asked.bmax, window / 1e3), live)
            engine.follow(load(asked))
            part, now = time.perf_counter() - began, 0.0
            while engine.answered < asked.nreq:
                yield found
                began = time.perf_counter()
                now += AT_ONCE
                engine.advance(now)
                part += time.perf_counter() - began
            runs = {**found.runs, window: Served(window / 1e3, finish(engine))}
            found = replace(found, runs=runs, took=found.took if isfinite(found.took) else spent + part)
            yield found
    except FAILS as error:
        yield replace(found, warnings=(not_measured(error),))


def explorer(device: gpu.Device | None = None) -> Explorer:
    """All knobs: each move launches here. As text it is the recorded part, which is the same on every machine."""

    def recorded(**settings: Any) -> Compared:
        asked = Settings(**settings)
        return Compared(asked, on_the_card(asked))

    def measuring(**settings: Any) -> Measuring:
        shown = recorded(**settings)
        yield shown
        for found in here(shown.asked, device):
            yield replace(shown, here=found)

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": figures.two_machines,
        "summary": rows,
        "title": "The benchmark and its knobs",
        "badge": f"{profile().badge}; arrivals and waits simulated",
        "beside": False,
    }
    return MeasuringExplorer(Explorer(recorded, **shared), measuring, **shared)


def rows(found: Compared) -> list[tuple[str, ...]]:
    """The four criteria, and the three numbers that the benchmark prints."""
    columns = {f"{found.recorded.where.removeprefix('NVIDIA ')}, recorded": found.recorded}
    if found.here.where:
        columns["here, measured"] = found.here
    verdicts = [machine.passed() for machine in columns.values()]
    table: list[tuple[str, ...]] = [("", *columns)]
    for name in verdicts[0]:
        cells = (each[name] for each in verdicts)
        table.append((name, *(text if text == "-" else f"{'yes' if holds else 'no'}, {text}" for holds, text in cells)))
    runs = [machine.runs.get(found.asked.window_ms) for machine in columns.values()]
    for name, value in PRINTED.items():
        table.append((name, *(value(run) if run else "-" for run in runs)))
    return table


PRINTED = {
    "tokens/s of GPU time": lambda run: f"{run.gpu_tokens:,.0f}",
    "TTFT, p95": lambda run: seconds(run.p95),
    "E2E, mean": lambda run: seconds(run.e2e),
}
"""What the benchmark prints of a run."""
