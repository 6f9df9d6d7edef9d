"""An explorer that launches: small requests served by this machine, and Little's law on its own clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course import gpu, policies
from course.engine.run import Run
from course.engine.serving import serve
from course.engine.step import StepTime
from course.explore import Explorer, Slider
from course.explore.live import LiveExplorer
from course.figures.words import seconds
from course.lessons.lab03 import shown_figures
from course.lessons.lab03.one_engine import STEP
from course.lm.threads import one_thread
from course.workload import Workload, lengths

REQUESTS, PROMPT, ANSWER, ANSWER_CV = 80, 8, 24, 1.0  # tokens; the answer on average
BUDGET = 256  # tokens a step, and rows that a layer has room for
WIDTH = 1_024  # of the matrix; with 4 bytes each, 4 MB are read in every step
TIMES = 7
AT_ONCE = 1e9  # requests/s
CONTROLS = (
    Slider("load", "Load", 0.2, 0.9, 0.1, 0.5, "of capacity"),
    Slider("max_num_seqs", "Slots (max_num_seqs)", 2, 16, 2, 8, log=True),
)
Layer = Callable[[int], float]
"""Computes one step of so many rows and returns its seconds."""


@dataclass(frozen=True)
class Launched:
    """One setting: the run on recorded steps, and the run on this machine with its name where there is one."""

    recorded: Run
    measured: Run | None = None
    where: str = ""
    failure: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept the requests from being served here."""
        return (self.failure,) if self.failure else ()

    @property
    def runs(self) -> dict[str, Run]:
        """What there is, by where its step times come from."""
        here = {"measured here": self.measured} if self.measured else {}
        return {"recorded": self.recorded, **here}


def requests(rate: float) -> Workload:
    """Few and short requests, so that a CPU can serve them while somebody waits. rate: requests/s."""
    answers = lengths.lognormal(ANSWER, ANSWER_CV)
    return Workload.poisson(rate=rate, num_requests=REQUESTS, prompt_tokens=PROMPT, output_tokens=answers, seed=0)


def engine(max_num_seqs: int) -> policies.Continuous:
    """Continuous batching for the small requests."""
    return policies.Continuous(max_num_seqs=max_num_seqs, max_num_batched_tokens=BUDGET)


def recorded(load: float, max_num_seqs: int) -> Launched:
    """The requests on recorded steps, at this share of the capacity that those have."""
    return Launched(at_load(load, max_num_seqs, STEP))


def at_load(load: float, max_num_seqs: int, step_time: StepTime) -> Run:
    """The requests at this share of what these step times sustain while somebody waits."""
    full = serve(requests(AT_ONCE), engine(max_num_seqs), step_time)
    return serve(requests(load * REQUESTS / full.makespan), engine(max_num_seqs), step_time)


def launch_explorer(device: gpu.Device | None = None) -> Explorer:
    """Sliders for load and slots; every move serves the requests on this machine, beside the recorded H100.

    device: where to run; the best there is, found when the explorer is shown. A device that fails leaves the recording
    and a sentence. As text the explorer is the recorded part alone, which is the same on every machine.
    """
    bench = _Bench(device)

    def both(load: float, max_num_seqs: int) -> Launched:
        return bench(recorded(load, max_num_seqs), load, max_num_seqs)

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": lambda found: shown_figures.numbers_in_system(found.runs),
        "summary": rows,
        "title": f"{REQUESTS} requests, served here",
        "badge": STEP.badge,
    }
    return LiveExplorer(Explorer(recorded, **shared), both, **shared)


def layer(device: gpu.Device) -> Layer:
    """A decode kernel with a block for each row on a GPU; on a CPU one matrix product, whose weights all rows share."""
    if device.is_gpu:
        step, watch = gpu.DecodeStep(device, 65_536, 256, BUDGET), device.stopwatch()
        return lambda rows: float(watch.time(step.prepare(rows))[0])
    weights = np.full((WIDTH, WIDTH), 1e-3, dtype=np.float32)
    inputs = np.ones((BUDGET, WIDTH), dtype=np.float32)

    def product(rows: int) -> float:
        begin = time.perf_counter()
        inputs[:rows] @ weights
        return time.perf_counter() - begin

    return product


def by_size(compute: Layer) -> Layer:
    """Steps of each size computed TIMES times, the shortest counts: what lengthens one is mostly somebody else."""
    known: dict[int, float] = {}

    def shortest(rows: int) -> float:
        if rows not in known:
            known[rows] = min(compute(rows) for _ in range(TIMES))
        return known[rows]

    return shortest


class _Bench:
    """Serves on the device at hand; each setting once."""

    def __init__(self, device: gpu.Device | None) -> None:
        self._device = device
        self._layer: Layer | None = None
        self._known: dict[tuple[float, int], Run] = {}

    def __call__(self, found: Launched, load: float, max_num_seqs: int) -> Launched:
        try:
            device = self._device = self._device or gpu.device()
            key = load, max_num_seqs
            if key not in self._known:
                self._known[key] = self._serve(device, load, max_num_seqs)
        except gpu.KernelError as error:
            return replace(found, failure=f"Nothing is measured here: {error}.")
        return replace(found, measured=self._known[key], where=device.name)

    def _serve(self, device: gpu.Device, load: float, max_num_seqs: int) -> Run:
        self._layer = self._layer or layer(device)
        self._layer(1)  # the first launch loads and allocates
        timed = by_size(self._layer)
        with one_thread():
            return at_load(load, max_num_seqs, lambda step: timed(step.decodes + step.prefill_tokens))


def rows(found: Launched) -> list[tuple[str, ...]]:
    """Both sides of Little's law, a column for each machine."""
    names = {"recorded": f"recorded: {STEP.card}", "measured here": f"measured here: {found.where}"}
    laws = [run.little() for run in found.runs.values()]
    return [
        ("", *(names[name] for name in found.runs)),
        ("steps", *(f"{len(run.steps):,}" for run in found.runs.values())),
        ("a step, median", *(seconds(float(np.median(run.steps.seconds))) for run in found.runs.values())),
        ("λ, arrivals per second", *(f"{law.arrival_rate:.6g}" for law in laws)),
        ("W, mean E2E", *(f"{1e3 * law.W:.6g} ms" for law in laws)),
        ("λ W", *(f"{law.arrival_rate * law.W:.4f}" for law in laws)),
        ("L, counted by the clock", *(f"{law.L:.4f}" for law in laws)),
    ]
