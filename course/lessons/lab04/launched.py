"""An explorer that launches: the steps of a static and of a continuous batch on the device at hand, beside an H100."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course import gpu
from course.engine.run import Run
from course.engine.serving import serve
from course.engine.step import Step
from course.explore import Explorer, Slider
from course.explore.live import LiveExplorer
from course.figures.words import seconds
from course.lessons.lab04 import figures, side_by_side
from course.lessons.lab04.three_batchers import STEP
from course.workload import Workload, lengths

REQUESTS, PROMPT, ANSWER = 24, 8, 24  # tokens, the last on average
WIDTH = 1_024  # of the matrix; with 4 bytes each, 4 MB are read in every step
MOST_ROWS = 256
TIMES = 7
CONTROLS = (
    Slider("max_num_seqs", "Slots", 2, 16, 2, 8, log=True),
    Slider("output_cv", "Spread of answers (CV)", 0.0, 2.0, 0.1, 1.0),
)
Layer = Callable[[int], float]
"""Computes one step of so many rows and returns its seconds."""


def small_load(output_cv: float) -> Workload:
    """Requests that are all there at the start, few and short enough for a CPU."""
    drawn = Workload.fixed(
        rate=1,
        num_requests=REQUESTS,
        prompt_tokens=PROMPT,
        output_tokens=lengths.lognormal(ANSWER, output_cv),
        seed=1,
    )
    return side_by_side.at_once(drawn)


def layer(device: gpu.Device) -> Layer:
    """A decode kernel with a block for each row on a GPU; on a CPU one matrix product, whose weights all rows share."""
    if device.is_gpu:
        step, watch = gpu.DecodeStep(device, 65_536, 256, MOST_ROWS), device.stopwatch()
        return lambda rows: float(watch.time(step.prepare(rows))[0])
    weights = np.full((WIDTH, WIDTH), 1e-3, dtype=np.float32)
    inputs = np.ones((MOST_ROWS, WIDTH), dtype=np.float32)

    def product(rows: int) -> float:
        begin = time.perf_counter()
        inputs[: max(rows, 2)] @ weights  # for one row NumPy's library takes a routine that suffers from busy cores
        return time.perf_counter() - begin

    return product


@dataclass(frozen=True)
class Measurement:
    """Seconds of each step by policy on the device of that name; empty where nothing ran.

    A step's seconds are the shortest of all steps with as many rows, of TIMES at least: what lengthens a single one is
    mostly who else uses the machine.
    """

    where: str
    steps: Mapping[str, np.ndarray]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launched:
    """One setting: both policies on recorded steps, and what the same steps took here."""

    runs: Mapping[str, Run]
    measured: Measurement | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept the steps from running here."""
        return self.measured.warnings if self.measured else ()


def recorded(max_num_seqs: int, output_cv: float) -> Launched:
    """Static and continuous batching on the steps of the recording."""
    by_name = side_by_side.three_policies(max_num_seqs, max_num_batched_tokens=MOST_ROWS)
    return Launched({name: serve(small_load(output_cv), by_name[name], STEP) for name in ("static", "continuous")})


def launch_explorer(device: gpu.Device | None = None) -> Explorer:
    """Sliders for slots and spread over steps that run here, with the recorded steps of a whole model beside them.

    device: where to run; the best there is, found when the explorer is shown. A device that fails leaves the recording
    and a sentence. As text the explorer is the recorded part alone, which is the same on every machine.
    """
    bench = _Bench(device)

    def both(max_num_seqs: int, output_cv: float) -> Launched:
        found = recorded(max_num_seqs, output_cv)
        return replace(found, measured=bench(max_num_seqs, found.runs))

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": _figure,
        "summary": rows,
        "title": f"{REQUESTS} requests, launched",
        "badge": STEP.badge,
    }
    return LiveExplorer(Explorer(recorded, **shared), both, **shared)


class _Bench:
    """Runs each setting once and remembers."""

    def __init__(self, device: gpu.Device | None) -> None:
        self._device = device
        self._layer: Layer | None = None
        self._known: dict[tuple, Measurement] = {}

    def __call__(self, slots: int, runs: Mapping[str, Run]) -> Measurement:
        key = (slots, *runs["static"].workload.output_tokens.tolist())
        if key not in self._known:
            self._known[key] = self._measure(runs)
        return self._known[key]

    def _measure(self, runs: Mapping[str, Run]) -> Measurement:
        try:
            device = self._device = self._device or gpu.device()
            compute = self._layer = self._layer or layer(device)
            compute(1)  # the first launch loads and allocates
            timed = {name: _timed(run, compute) for name, run in runs.items()}
            usual = _shortest(_by_rows(timed), compute)
        except gpu.KernelError as error:
            return Measurement("", {}, (f"Nothing is measured here: {error}.",))
        return Measurement(device.name, {n: np.array([usual[r] for r in steps[:, 0]]) for n, steps in timed.items()})


def _by_rows(timed: Mapping[str, np.ndarray]) -> dict[int, list[float]]:
    """Seconds of the steps that were computed, by their rows."""
    found: dict[int, list[float]] = {}
    for count, took in np.concatenate(list(timed.values())).tolist():
        found.setdefault(int(count), []).append(took)
    return found


def _shortest(timed: Mapping[int, list[float]], compute: Layer) -> dict[int, float]:
    """The shortest step of so many rows, after TIMES of them in turns: a busy moment of the machine then meets all."""
    for turn in range(1, TIMES):
        for count, took in timed.items():
            if len(took) <= turn:
                took.append(compute(count))
    return {count: min(took) for count, took in timed.items()}


def _timed(run: Run, compute: Layer) -> np.ndarray:
    """Rows and seconds of each step, shape (steps, 2): the engine again, with every step computed for real."""
    found: list[tuple[int, float]] = []

    def step_time(step: Step) -> float:
        count = step.decodes + step.prefill_tokens
        found.append((count, compute(count)))
        return found[-1][1]

    serve(run.workload, run.policy, step_time)
    return np.array(found)


def rows(found: Launched) -> list[tuple[str, ...]]:
    """Steps and padding, which are the same everywhere, and the seconds of each machine."""
    names = list(found.runs)
    steps = [len(run.steps) for run in found.runs.values()]
    padding = [1 - side_by_side.slot_utilisation(run) for run in found.runs.values()]
    table = [
        ("", *names, "gain"),
        ("steps", *(f"{count:,}" for count in steps), f"{steps[0] / steps[1]:.2f}x"),
        ("padding, of the slot-steps", *(f"{share:.0%}" for share in padding), ""),
        _seconds(f"recorded: {STEP.card}", {name: run.steps.seconds for name, run in found.runs.items()}, names),
    ]
    if found.measured is not None:
        where = found.measured.where
        table.append(_seconds("measured here" + (f": {where}" if where else ""), found.measured.steps, names))
    return table


def _seconds(label: str, steps: Mapping[str, np.ndarray], names: list[str]) -> tuple[str, ...]:
    if not steps:
        return (label, *["-"] * len(names), "-")
    took = [float(steps[name].sum()) for name in names]
    return (label, *(seconds(value) for value in took), f"{took[0] / took[1]:.2f}x")


def _figure(found: Launched) -> go.Figure:
    """Tokens that somebody wanted over time, a panel and a clock for each machine."""
    panels: dict[str, Mapping[str, np.ndarray]] = {
        "recorded": {name: run.steps.seconds for name, run in found.runs.items()}
    }
    if found.measured is not None and found.measured.steps:
        panels["measured here"] = found.measured.steps
    useful = {name: run.steps.useful for name, run in found.runs.items()}
    return figures.delivered(panels, useful)
