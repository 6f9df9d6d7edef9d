"""An explorer that launches: one token's attention over its K and V on the device at hand, beside recorded steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go

from course import gpu
from course.explore import Explorer, Slider
from course.explore.live import LiveExplorer
from course.figures import theme
from course.figures.parts import LEFT, MARGIN, RIGHT, Part, dots, heading, line, place
from course.figures.words import seconds
from course.gpu.errors import FAILS, not_measured
from course.gpu.one_layer import GPU_KIND, WIDTH, in_numpy, on_a_gpu
from course.gpu.ops.queue import Queue
from course.gpu.queues import queue
from course.gpu.timing import measure
from course.models import model
from course.steptime import Recorded, Step, recorded

CONTEXT = Slider("context", "Context of each sequence", 512, 4_096, 2, 1_024, "tokens", log=True)
KV_HEADS = (32, 8, 4)
"""KV heads of what is launched here; 8 are those of the recorded model."""
BATCH = 32  # sequences of the recorded step, and of a launch on a GPU
TYPES = {True: (GPU_KIND, 2), False: ("float32", 4)}  # on a GPU or not: name and bytes of an element


@dataclass(frozen=True)
class Measurement:
    """Seconds to read the K and V of one layer, by KV heads, on the device of that name; empty where nothing ran."""

    where: str
    sequences: int
    element_bytes: int
    seconds: Mapping[int, float]
    warnings: tuple[str, ...] = ()

    @property
    def element(self) -> str:
        """Name of the type of K and V."""
        return next(name for name, size in TYPES.values() if size == self.element_bytes)

    def bytes(self, kv_heads: int, context: int) -> int:
        """K and V that a launch reads."""
        return 2 * self.sequences * context * kv_heads * WIDTH * self.element_bytes


@dataclass(frozen=True)
class Reading:
    """One context: the recorded step with and without its K and V, and what was measured here."""

    context: int
    step: float
    without: float
    kv_bytes: int
    measured: Measurement | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept anything from running here."""
        return self.measured.warnings if self.measured else ()


def reading_explorer(
    device: gpu.Device | None = None, recording: str = "h100-llama3-8b", *, max_seconds: float = 0.2
) -> Explorer:
    """A slider for the context over attention that runs here, with recorded steps of a real model beside it.

    The two are different work and are labelled: all of a model's step on a card, and the attention of one layer here.
    device: where to run; the best there is, found when the explorer is shown. The course's kernel runs on a GPU, NumPy
    everywhere else. max_seconds: after which nothing is launched another time. A device that fails leaves the recording
    and a sentence. As text the explorer is the recorded part alone, which is the same on every machine.

    Raises ValueError: no such recording.
    """
    profile = recorded(recording)
    bench = _Bench(device, max_seconds)

    def on_the_card(context: int) -> Reading:
        tokens = BATCH * context
        without, _ = profile.decode_line(BATCH)
        return Reading(context, profile(Step(BATCH, tokens, ())), without, tokens * _token(profile))

    def both(context: int) -> Reading:
        return replace(on_the_card(context), measured=bench(context))

    shared: dict[str, Any] = {
        "controls": (CONTEXT,),
        "figure": lambda found: _figure(found, profile),
        "summary": lambda found: _rows(found, profile),
        "title": "Reading K and V",
        "badge": profile.badge,
        "beside": False,
    }
    return LiveExplorer(Explorer(on_the_card, **shared), both, **shared)


def _token(profile: Recorded) -> int:
    return model(profile.model).kv_bytes_per_token


class _Bench:
    """Launches each context once and remembers; the median of several launches each."""

    def __init__(self, device: gpu.Device | None, max_seconds: float) -> None:
        self._device, self._max_seconds = device, max_seconds
        self._queue: Queue | None = None
        self._known: dict[int, Measurement] = {}

    def __call__(self, context: int) -> Measurement:
        if context not in self._known:
            self._known[context] = self._measure(context)
        return self._known[context]

    def _measure(self, context: int) -> Measurement:
        try:
            device = self._device = self._device or gpu.device()
            work = self._queue = self._queue or queue(device)
            how: dict[str, Any] = {"launches": 15, "max_seconds": self._max_seconds, "warm": 1}
            found = {kv: measure(work, _launch(work, context, kv), **how).seconds for kv in KV_HEADS}
        except FAILS as error:
            return Measurement("", 0, 0, {}, (not_measured(error),))
        name = device.name if device.is_gpu else f"{device.name}, NumPy"
        return Measurement(name, BATCH if device.is_gpu else 1, TYPES[device.is_gpu][1], found)


def _launch(work: Queue, context: int, kv_heads: int) -> Callable[[], Any]:
    return on_a_gpu(work, context, kv_heads, BATCH) if work.device.is_gpu else in_numpy(context, kv_heads)


def _figure(found: Reading, profile: Recorded, *, height: int = 300) -> go.Figure:
    """Left, the recorded step over the context; right, the attention that was launched here, by KV heads."""
    contexts = [float(stop) for stop in CONTEXT.stops]
    steps = [1e3 * profile(Step(BATCH, int(BATCH * context), ())) for context in contexts]
    data: list[Part] = [
        line([0, contexts[-1]], [1e3 * found.without] * 2, "theory", "without K and V", dash="dash"),
        line(contexts, steps, "recorded", "a step"),
        dots([found.context], [1e3 * found.step], ["recorded"], "this context"),
    ]
    notes = [heading(1, f"recorded: a step of {BATCH} decodes")]
    live = found.measured
    if live and live.seconds:
        values = [1e3 * live.seconds[kv] for kv in KV_HEADS]
        data.append(
            place(2) | {"type": "bar", "x": [f"{kv} heads" for kv in KV_HEADS], "y": theme.round_digits(values),
                       "name": "measured", "marker": {"color": theme.COLOURS["measured"]}}
        )  # fmt: skip
        notes.append(heading(2, f"measured here: one layer, {live.element}"))
    axes = {
        "xaxis": {"title": {"text": "context of each [tokens]"}, "domain": LEFT, "anchor": "y", "rangemode": "tozero"},
        "yaxis": {"title": {"text": "time [ms]"}, "anchor": "x", "rangemode": "tozero"},
        "xaxis2": {"domain": RIGHT, "anchor": "y2", "title": {"text": "attention [count of KV heads]"}},
        "yaxis2": {"title": {"text": "time [ms]"}, "anchor": "x2", "rangemode": "tozero"},
    }
    layout = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes, **axes}
    return theme.plain_figure(data, layout)


def _rows(found: Reading, profile: Recorded) -> list[tuple[str, ...]]:
    """The recorded step, and with 8 KV heads what was measured here."""
    rows: list[tuple[str, ...]] = [
        ("", "recorded"),
        ("where", profile.card),
        ("what", f"{BATCH} sequences, all layers"),
        ("K and V to read", _mb(found.kv_bytes)),
        ("time for them", seconds(found.step - found.without)),
        ("read", _rate(found.kv_bytes, found.step - found.without)),
        ("the rest of the step", seconds(found.without)),
    ]
    live = found.measured
    if live is None:
        return rows
    extra = ("measured here", live.where or "-", *["-"] * 5)
    if live.seconds:
        size, took = live.bytes(8, found.context), live.seconds[8]
        what = f"{live.sequences} sequence{'s' * (live.sequences > 1)}, one layer, {live.element}"
        extra = ("measured here", live.where, what, _mb(size), seconds(took), _rate(size, took), "-")
    return [(*row, more) for row, more in zip(rows, extra, strict=True)]


def _mb(size: float) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _rate(size: float, took: float) -> str:
    rate = size / took / 1e9 if took > 0 else 0.0
    return f"{float(f'{rate:.3g}'):,.4g} GB/s" if rate else "-"
