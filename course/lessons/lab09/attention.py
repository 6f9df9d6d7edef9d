"""An explorer that launches: attention over blocks that lie together and over scattered ones, beside an H200's times.

The kernel is the same and reads a block table in both. On a CPU NumPy multiplies what lies together as it is, and
gathers scattered blocks before: the copy that a paged kernel spares.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import plotly.graph_objects as go

from course import gpu
from course.explore import Explorer, Slider
from course.explore.live import Measuring, MeasuringExplorer
from course.figures import parts, theme
from course.figures.words import seconds
from course.gpu.errors import FAILS, not_measured
from course.gpu.one_layer import WIDTH, in_numpy, on_a_gpu
from course.gpu.ops import read_probe
from course.gpu.ops.queue import Queue
from course.gpu.queues import queue
from course.gpu.timing import Launch, measuring
from course.lm.threads import one_thread
from course.steptime import files

RECORDING = "h200_paged_attention"
BATCHES, CONTEXTS = (1, 4, 16, 64, 256), (512, 1_024, 2_048)
KV_HEADS, AT_ONCE = 8, 4  # of the model; sequences that a CPU computes in one part of a launch
TOGETHER, SCATTERED = "contiguous", "scattered"
HOW = (TOGETHER, SCATTERED)
LAUNCHES, LEAST, ENOUGH = 15, 3, 0.2  # launches of a median, at most and at least; seconds after which none begins
MOST_HERE = 150e6  # bytes of K and V that a CPU is given
CONTROLS = (
    Slider("batch", "Batch", BATCHES[0], BATCHES[-1], 4, 16, "sequences", log=True),
    Slider("context", "Context", CONTEXTS[0], CONTEXTS[-1], 2, CONTEXTS[0], "tokens", log=True),
)


@dataclass(frozen=True)
class Launched:
    """One setting: seconds by how the blocks lie, as recorded for all batches, and as measured here for this one."""

    batch: int
    context: int
    where: str = ""
    here: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether both orders were measured here."""
        return len(self.here) == len(HOW)

    @property
    def recorded(self) -> dict[str, dict[int, float]]:
        """By how they lie and by batch."""
        return recording().at(self.context)


class Recorded(files.Recording):
    """What tests/bench/paged_attention.py wrote down."""

    def __init__(self, name: str) -> None:
        self._found = files.read("paged_attention", name)
        self.provenance = self._found["provenance"]

    def at(self, context: int) -> dict[str, dict[int, float]]:
        """Seconds by how the blocks lie and by batch."""
        found = self._found["contexts"][str(context)]
        return {how: dict(zip(self._found["batches"], found[how], strict=True)) for how in HOW}

    @property
    def ratios(self) -> list[float]:
        """Scattered over contiguous, of all settings."""
        return [
            two / one for c in CONTEXTS for one, two in zip(*(self.at(c)[how].values() for how in HOW), strict=True)
        ]


@cache
def recording() -> Recorded:
    """The one that the explorer shows."""
    return Recorded(RECORDING)


class Bench:
    """Launches both orders in turn."""

    def __init__(self, device: gpu.Device | None, max_seconds: float) -> None:
        self._device, self._max_seconds = device, max_seconds
        self._work: Queue | None = None
        self._probe: Launch | None = None

    def measuring(self, batch: int, context: int) -> Measuring:
        """The recording alone, then what is measured with each order; the same again while a launch goes on."""
        found = None
        for latest in self._pieces(batch, context):
            found = latest or found
            yield found

    def _pieces(self, batch: int, context: int) -> Measuring:
        """The same, with None while a launch goes on."""
        shown = Launched(batch, context)
        yield shown
        try:
            with one_thread():
                self._device = self._device or gpu.device()
                self._work = self._work or queue(self._device)
                shown = replace(shown, where=self._device.name)
                if not self._device.is_gpu and batch * context * KV_HEADS * WIDTH * 8 > MOST_HERE:
                    raise MemoryError("this batch is too large for a CPU")
                for how in HOW:
                    launch = self._launch(batch, context, how == SCATTERED)
                    timing = yield from measuring(
                        self._work, launch, launches=LAUNCHES, max_seconds=self._max_seconds, warm=1, least=LEAST,
                        before=self._before(),
                    )  # fmt: skip
                    shown = replace(shown, here=shown.here | {how: timing.seconds})
                    yield shown
        except FAILS as error:
            yield replace(shown, here={}, warnings=(not_measured(error),))

    def _launch(self, batch: int, context: int, scattered: bool) -> Launch | list[Launch]:
        assert self._work is not None and self._device is not None
        if self._device.is_gpu:
            return on_a_gpu(self._work, context, KV_HEADS, batch, scattered)
        parts_of = [min(AT_ONCE, batch - start) for start in range(0, batch, AT_ONCE)]
        return [in_numpy(context, KV_HEADS, each, scattered) for each in parts_of]

    def _before(self) -> Launch | None:
        """On a GPU the weights pass through the cache between two layers: a matrix is read."""
        assert self._work is not None and self._device is not None
        if self._device.is_gpu and self._probe is None:
            import numpy as np

            words = self._device.to_device(np.zeros(28_672 * 4_096 // 2, np.uint32))
            out = self._device.empty((32 * self._work.multiprocessors,), np.uint32)
            self._probe = read_probe.prepare(self._work, words, out)
        return self._probe


def explorer(device: gpu.Device | None = None, *, max_seconds: float = ENOUGH) -> Explorer:
    """Sliders for batch and context. As text it is the recorded part alone, the same on every machine."""
    bench = Bench(device, max_seconds)
    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": figure,
        "summary": rows,
        "title": "Attention of one layer, blocks together or scattered",
        "badge": recording().badge,
        "beside": True,
    }
    return MeasuringExplorer(Explorer(Launched, **shared), bench.measuring, **shared)


def rows(found: Launched) -> list[tuple[str, ...]]:
    """Both orders at this batch, as recorded and as measured."""
    once = {how: found.recorded[how][found.batch] for how in HOW}
    table: list[tuple[str, ...]] = [("", recording().card, found.where or "this machine")]
    for how in HOW:
        table.append((f"blocks {how}", seconds(once[how]), seconds(found.here[how]) if found.whole else "-"))
    return [*table, ("scattered / contiguous", _ratio(once), _ratio(found.here) if found.whole else "-")]


def _ratio(times: dict[str, float]) -> str:
    return f"{times[SCATTERED] / times[TOGETHER]:.2f}"


def figure(found: Launched, *, height: int = 300) -> go.Figure:
    """Recorded seconds over the batch: the two lines lie on each other."""
    looks: dict[str, dict[str, Any]] = {TOGETHER: {"width": 6}, SCATTERED: {"dash": "dash"}}
    data = [
        parts.line(list(each), [1e6 * s for s in each.values()], "theory" if looks[how].get("width") else "decode", how)
        for how, each in found.recorded.items()
    ]
    for one, how in zip(data, found.recorded, strict=True):
        one["line"] |= looks[how]
    at = found.recorded[SCATTERED][found.batch]
    data.append(parts.dots([found.batch], [1e6 * at], ["decode"], "here"))
    axis = {"type": "log", "gridcolor": theme.GRID}
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN,
        "annotations": [parts.heading(1, "H200: contiguous (wide), scattered (dashed)")],
        "xaxis": axis | {"title": {"text": "batch [sequences]"}, "tickvals": list(BATCHES), "range": [-0.1, 2.5]},
        "yaxis": axis | {"title": {"text": "time [µs]"}, "tickvals": [10, 30, 100, 300], "range": [0.8, 2.8]},
    }  # fmt: skip
    return theme.plain_figure(data, layout)
