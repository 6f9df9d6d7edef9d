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
from course.lessons.lab07 import prefill as figures
from course.lessons.lab07.prompt_chunks import seconds_of_steps
from course.steptime import Recorded, recorded

PROMPT, HERE = 32_768, 8_192  # tokens: of the recorded prompt, and of the one that is launched here
CHUNK = Slider("chunk", "Chunk", 32, 8_192, 2, 512, "tokens", log=True)


def token_kernel(device: gpu.Device, most: int) -> gpu.DecodeStep:
    """The decode-step kernel for up to `most` tokens a launch, one block a token, with work that the device notices.

    A GPU has so many multiprocessors that it would do a CPU's share of work within the time of a launch.
    """
    work, threads = (65_536, 256) if device.is_gpu else (256, 1)
    return gpu.DecodeStep(device, work, threads, most)


@dataclass(frozen=True)
class Measurement:
    """Seconds of each step of a prompt of HERE tokens on the device of that name; empty where nothing ran.

    The shortest of several launches each: what lengthens a launch is mostly who else uses the machine.
    """

    where: str
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
        """What kept the kernel from running here."""
        return self.measured.warnings if self.measured else ()


def chunk_explorer(
    device: gpu.Device | None = None, recording: str = "h100-llama3-8b", *, max_seconds: float = 0.25
) -> Explorer:
    """A slider for the chunk over launches of the live kernel, with the recorded steps of a real model beside them.

    The two are different work, and each is labelled: a whole model recorded on a card, and a toy kernel that runs here.
    device: where to run; the best there is, found when the explorer is shown. max_seconds: after which a chunk size
    is not launched another time; each is launched once at least. A device that fails leaves the recording and a
    sentence. As text the explorer is the recorded part alone, which is the same on every machine.

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
        self._known: dict[int, Measurement] = {}

    def __call__(self, chunk: int) -> Measurement:
        if chunk not in self._known:
            self._known[chunk] = self._measure(chunk)
        return self._known[chunk]

    def _measure(self, chunk: int) -> Measurement:
        try:
            device = self._device = self._device or gpu.device()
            launch = token_kernel(device, HERE).prepare(chunk)
            watch = device.stopwatch()
            watch.time(launch)  # the first launch loads and allocates
            began = time.perf_counter()
            found: list[list[float]] = []
            while not found or (len(found) < 9 and time.perf_counter() - began < self._max_seconds):
                found.append([watch.time(launch)[0] for _ in range(HERE // chunk)])
        except gpu.KernelError as error:
            return Measurement("", np.empty(0), (f"Nothing is measured here: {error}.",))
        return Measurement(device.name, np.min(found, axis=0))


def _figure(found: InChunks, profile: Recorded) -> go.Figure:
    """The steps in time, a clock for each."""
    runs = {f"recorded: {PROMPT:,} tokens of {profile.model}": ("recorded", found.recorded)}
    if found.measured is not None and len(found.measured.steps):
        runs[f"measured here: {HERE:,} tokens of a toy kernel"] = ("measured", found.measured.steps)
    return figures.in_time(runs)


def _rows(found: InChunks, profile: Recorded) -> list[tuple[str, ...]]:
    """Recorded numbers, and in a second column those of this machine where it was measured."""
    heads, where = ["recorded"], [profile.card]
    what = [f"{PROMPT:,} tokens, {profile.model}"]
    columns = [_column(found.recorded)]
    if found.measured is not None:
        heads.append("measured here")
        where.append(found.measured.where or "-")
        what.append(f"{HERE:,} tokens, a toy kernel")
        columns.append(_column(found.measured.steps))
    labels = ("steps", "the longest step", "the whole prompt")
    rows = ((label, *values) for label, *values in zip(labels, *columns, strict=True))
    return [("", *heads), ("where", *where), ("what", *what), *rows]


def _column(steps: np.ndarray) -> tuple[str, str, str]:
    if not len(steps):
        return ("-",) * 3
    return f"{len(steps):,}", seconds(float(steps.max())), seconds(float(steps.sum()))
