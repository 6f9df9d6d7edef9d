"""An explorer that launches: decodes and a prompt apart and together, beside the same launches on an H200."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from course import gpu
from course.explore import Explorer, Slider
from course.explore.live import Measuring, MeasuringExplorer
from course.figures.words import seconds
from course.lessons.lab06 import figures
from course.lessons.lab06.on_device import ENOUGH, TOGETHER, WHAT, Bench, Here
from course.steptime import files

RECORDING = "h200_one_launch"
CONTROLS = (
    Slider("decodes", "Decodes", 16, 128, 2, 32, "sequences", log=True),
    Slider("chunk", "Tokens of a prompt", 64, 512, 2, 128, "tokens", log=True),
)


@dataclass(frozen=True)
class Launched:
    """One setting: what was recorded on a card, and on this machine."""

    recorded: Here
    here: Here = field(default_factory=lambda: Here(""))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept something from running here."""
        return self.here.warnings


class Recorded(files.Recording):
    """The launches of `Bench` on a card, as tests/bench/one_launch.py has them."""

    def __init__(self, name: str) -> None:
        found = files.read("one_launch", name)
        self.provenance, self._found = found["provenance"], found["times"]

    def at(self, decodes: int, chunk: int) -> Here:
        """What was launched at one setting of the sliders."""
        return Here(self.card, self._found[f"{decodes} {chunk}"])


@cache
def recording() -> Recorded:
    """The one that the explorer shows."""
    return Recorded(RECORDING)


def apart(ways: dict[str, float]) -> float:
    """Seconds of the two launches, one after the other."""
    return sum(value for way, value in ways.items() if way != TOGETHER)


def gain(here: Here, what: str) -> float:
    """Seconds of two launches over those of one."""
    return apart(here.times[what]) / here.times[what][TOGETHER]


def launch_explorer(device: gpu.Device | None = None, *, max_seconds: float = ENOUGH) -> Explorer:
    """Sliders for the decodes and the prompt's tokens: each move launches here, beside the recording.

    device: where to run; the best there is, found when the explorer is shown. max_seconds: after which nothing is
    launched a fourth time. A device that fails leaves the recording and a sentence. As text the explorer is the
    recorded part alone, which is the same on every machine.
    """
    bench = Bench(device, max_seconds)

    def on_the_card(decodes: int, chunk: int) -> Launched:
        return Launched(recording().at(decodes, chunk))

    def measuring(decodes: int, chunk: int) -> Measuring:
        shown = on_the_card(decodes, chunk)
        for here in bench.measuring(decodes, chunk):
            shown = shown if here is None else replace(shown, here=here)
            yield shown

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": lambda found: figures.launches(found.recorded, found.here),
        "summary": rows,
        "title": "One launch for both, or two",
        "badge": recording().badge,
        "beside": False,
    }
    return MeasuringExplorer(Explorer(on_the_card, **shared), measuring, **shared)


def rows(found: Launched) -> list[tuple[str, ...]]:
    """How long two launches take, and one."""
    columns = [_column(found.recorded, "recorded")]
    if found.here.times:
        columns.append(_column(found.here, "measured"))
    labels = [""] + [f"{what}, {way}" for what in WHAT for way in ("two launches", "one", "two / one")]
    return [(name, *values) for name, *values in zip(labels, *columns, strict=True)]


def _column(here: Here, badge: str) -> list[str]:
    cells = [f"{here.where}, {badge}"]
    for what in WHAT:
        ways = here.times.get(what, {})
        if len(ways) == 3:
            cells += [seconds(apart(ways)), seconds(ways[TOGETHER]), f"{gain(here, what):.2f}"]
        else:
            cells += ["-"] * 3
    return cells
