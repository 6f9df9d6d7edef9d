"""An explorer that launches: read probe, matrix product and attention at hand, beside the same launches on an H200.

The recording is of one matrix and the attention of one layer, as what is launched here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from course import gpu
from course.explore import Explorer, Slider
from course.explore.live import Measuring, MeasuringExplorer
from course.figures.words import seconds
from course.lessons.lab02 import figures
from course.lessons.lab02.figures import label
from course.lessons.lab02.on_device import BATCHES, ENOUGH, WHAT, Bench, Here
from course.lessons.lab02.one_step import amount
from course.steptime import files

RECORDING = "h200_one_layer"
CONTROLS = (
    Slider("batch", "Batch", BATCHES[0], BATCHES[-1], 4, 16, "sequences", log=True),
    Slider("context", "Context", 256, 1_024, 2, 512, "tokens", log=True),
)


@dataclass(frozen=True)
class Launched:
    """One setting: what was recorded on a card, and on this machine."""

    batch: int
    context: int
    recorded: Here
    here: Here = field(default_factory=lambda: Here(""))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept something from running here."""
        return self.here.warnings


class Recorded(files.Recording):
    """The launches of `Bench` on a card, as tests/bench/one_layer.py wrote them."""

    def __init__(self, name: str) -> None:
        found = files.read("one_layer", name)
        self.provenance, self._found = found["provenance"], found

    def at(self, context: int) -> Here:
        """What was launched over this context, one of those of the slider."""
        found = self._found["contexts"][str(context)]
        times = {what: dict(zip(self._found["batches"], found[what], strict=True)) for what in WHAT}
        kv = self._found["kv_bytes_per_token"] * context
        return Here(self.card, times, self._found["matrix_bytes"], kv)


@cache
def recording() -> Recorded:
    """The one that the explorer shows."""
    return Recorded(RECORDING)


def launch_explorer(device: gpu.Device | None = None, *, max_seconds: float = ENOUGH) -> Explorer:
    """Sliders for batch and context: each move launches here, beside the same launches as recorded on a card.

    device: where to run; the best there is, found when the explorer is shown. max_seconds: after which nothing is
    launched a fourth time. A device that fails leaves the recording and a sentence. As text the explorer is the
    recorded part alone, which is the same on every machine.
    """
    bench = Bench(device, max_seconds)

    def on_the_card(batch: int, context: int) -> Launched:
        return Launched(batch, context, recording().at(context))

    def measuring(batch: int, context: int) -> Measuring:
        shown = on_the_card(batch, context)
        for here in bench.measuring(batch, context):
            shown = shown if here is None else replace(shown, here=here)
            yield shown

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": lambda found: figures.two_machines(found.recorded, found.here, found.batch),
        "summary": rows,
        "title": "Weights for all, K and V for each",
        "badge": recording().badge,
        "beside": False,
    }
    return MeasuringExplorer(Explorer(on_the_card, **shared), measuring, **shared)


def rows(found: Launched) -> list[tuple[str, ...]]:
    """What is read and how long it takes, at this batch."""
    columns = [_column(found.recorded, "recorded", found.batch)]
    if found.here.times:
        columns.append(_column(found.here, "measured", found.batch))
    labels = ("", "weights", "read them", "multiply by them", "multiply / read", "K and V", "attention")
    return [(name, *values) for name, *values in zip(labels, *columns, strict=True)]


def _column(found: Here, badge: str, batch: int) -> tuple[str, ...]:
    read, product, attention = (_took(found, what, batch) for what in WHAT)
    sizes = [amount(size, "B") if size else "-" for size in (found.matrix_bytes, found.kv_bytes * batch)]
    ratio = f"{found.times[WHAT[1]][batch] / found.times[WHAT[0]][batch]:.2g}"
    times = "-" if ratio == "nan" else f"{ratio} times"
    return f"{found.where}, {badge}", sizes[0], read, product, times, sizes[1], attention


def _took(found: Here, what: str, batch: int) -> str:
    """The median, and what was just measured with its spread and its number of launches."""
    latest = found.latest.get(what)
    if latest is None:
        return label(found.times[what][batch])
    many = f"{latest.launches} launch{'es' * (latest.launches > 1)}"
    return f"{seconds(latest.seconds)} ({seconds(latest.low)} to {seconds(latest.high)}, {many})"
