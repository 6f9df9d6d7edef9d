"""An explorer that launches: one long prompt in chunks on the device at hand, beside steps recorded on a real card."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course import gpu
from course.explore import Explorer, Slider
from course.explore.live import LiveExplorer
from course.figures.words import seconds
from course.gpu.errors import FAILS, not_measured
from course.gpu.one_prompt import OnACpu, OnAGpu, one_prompt
from course.lessons.lab07 import prefill as figures
from course.lessons.lab07.prompt_chunks import DECODES, seconds_of_steps
from course.lm.threads import one_thread
from course.steptime import Recorded, recorded

PROMPT = 32_768
"""Tokens of the recorded prompt."""
HERE = {True: PROMPT, False: 4_096}
"""Tokens of the one that is launched, on a GPU or not."""
CHUNK = Slider("chunk", "Chunk", 32, 4_096, 2, 512, "tokens", log=True)
MOST = 9
"""Times that a chunk size is launched."""


@dataclass(frozen=True)
class Measurement:
    """Seconds of each step of a prompt of so many tokens, on the device of that name; empty where nothing ran.

    The shortest of several launches each: what lengthens a launch is mostly who else uses the machine.
    """

    where: str
    tokens: int
    steps: np.ndarray
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class InChunks:
    """One chunk size: the recorded steps of the long prompt, and those measured here."""

    chunk: int
    recorded: np.ndarray
    measured: Measurement | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept the launches from running here."""
        return self.measured.warnings if self.measured else ()


def chunk_explorer(
    device: gpu.Device | None = None, recording: str = "h200-llama3-8b-flash", *, max_seconds: float = 0.25
) -> Explorer:
    """A slider for the chunk over launches on this device, with the recorded steps of a whole model beside them.

    The two are different work, and each is labelled: all layers recorded on a card, and here the attention of one layer
    and the product with one matrix. device: where to run; the best there is, found when the explorer is shown.
    max_seconds: after which a chunk size is not launched another time; each is launched once at least, after a first
    time that does not count. A device that fails leaves the recording and a sentence. As text the explorer is the
    recorded part alone, which is the same on every machine.

    Raises ValueError: no such recording.
    """
    profile = recorded(recording)
    bench = _Bench(device, max_seconds)

    def on_the_card(chunk: int) -> InChunks:
        return InChunks(chunk, seconds_of_steps(PROMPT, chunk, profile))

    def both(chunk: int) -> InChunks:
        return replace(on_the_card(chunk), measured=bench(chunk))

    shared: dict[str, Any] = {
        "controls": (CHUNK,),
        "figure": lambda found: _figure(found, profile),
        "summary": lambda found: _rows(found, profile),
        "title": "Launched in chunks",
        "badge": profile.badge,
    }
    return LiveExplorer(Explorer(on_the_card, **shared), both, **shared)


class _Bench:
    """Launches each chunk size once and remembers."""

    def __init__(self, device: gpu.Device | None, max_seconds: float) -> None:
        self._device, self._max_seconds = device, max_seconds
        self._prompt: OnACpu | OnAGpu | None = None
        self._known: dict[int, Measurement] = {}

    def __call__(self, chunk: int) -> Measurement:
        if chunk not in self._known:
            with one_thread():
                self._known[chunk] = self._measure(chunk)
        return self._known[chunk]

    def _measure(self, chunk: int) -> Measurement:
        try:
            device = self._device = self._device or gpu.device()
            prompt = self._prompt = self._prompt or one_prompt(device, HERE[device.is_gpu])
            launches, watch = prompt.steps(chunk), prompt.stopwatch()
            watch.time(launches[0])  # the first launch loads and allocates
            began = time.perf_counter()
            found: list[list[float]] = []
            while not found or (len(found) < MOST and time.perf_counter() - began < self._max_seconds):
                found.append([watch.time(launch)[0] for launch in launches])
        except FAILS as error:
            return Measurement("", 0, np.empty(0), (not_measured(error),))
        name = device.name if device.is_gpu else f"{device.name}, NumPy"
        return Measurement(name, prompt.tokens, np.min(found, axis=0))


def _figure(found: InChunks, profile: Recorded) -> go.Figure:
    """The steps in time, a clock for each."""
    runs = {f"recorded: {PROMPT:,} tokens of {profile.model}": ("recorded", found.recorded)}
    here = found.measured
    if here is not None and len(here.steps):
        runs[f"measured here: {here.tokens:,} tokens, a matrix and attention"] = ("measured", here.steps)
    return figures.in_time(runs)


def _rows(found: InChunks, profile: Recorded) -> list[tuple[str, ...]]:
    """Recorded numbers, and in a second column those of this machine where it was measured."""
    heads, where = ["recorded"], [profile.card]
    what, beside = [f"{PROMPT:,} tokens, all layers"], [f"{DECODES} decodes"]
    columns = [_column(found.recorded)]
    here = found.measured
    if here is not None:
        heads.append("measured here")
        where.append(here.where or "-")
        what.append(f"{here.tokens:,} tokens, a matrix and attention" if len(here.steps) else "-")
        beside.append("nothing" if len(here.steps) else "-")
        columns.append(_column(here.steps))
    labels = ("steps", "the longest step", "the whole prompt")
    rows = ((label, *values) for label, *values in zip(labels, *columns, strict=True))
    return [("", *heads), ("where", *where), ("what", *what), ("beside each chunk", *beside), *rows]


def _column(steps: np.ndarray) -> tuple[str, str, str]:
    if not len(steps):
        return ("-",) * 3
    return f"{len(steps):,}", seconds(float(steps.max())), seconds(float(steps.sum()))
