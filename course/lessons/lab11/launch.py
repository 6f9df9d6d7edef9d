"""An explorer that launches: the layouts of one batch through attention on this machine, beside the same on an H200."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from course import gpu
from course.explore import Choice, Explorer, Slider
from course.explore.live import Measuring, MeasuringExplorer
from course.figures.words import seconds
from course.lessons.lab11 import card, figures
from course.lessons.lab11.batch import LAYOUTS, MEAN, MEANS, MIXES, PACKED, SPREAD, SPREADS
from course.lessons.lab11.card import PROMPTS, OnCard, recording
from course.lessons.lab11.on_device import ENOUGH, Bench, Here

CONTROLS = (
    Choice("mix", "Prompts", list(MIXES), SPREAD),
    Slider("spread", "Spread", SPREADS[0], SPREADS[-1], 0.5, 1.0),
    Slider("mean", "Mean prompt", MEANS[0], MEANS[-1], 2, MEAN, "tokens", log=True),
)


@dataclass(frozen=True)
class Launched:
    """One setting: what was recorded on a card, and measured on this machine."""

    recorded: OnCard
    here: Here = field(default_factory=lambda: Here(""))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept something from running here."""
        return self.here.warnings


def explorer(device: gpu.Device | None = None, *, max_seconds: float = ENOUGH) -> Explorer:
    """Each move launches every layout anew, at least five times. As text it is the recorded part alone.

    device: where to run; the best there is, found when the explorer is shown. max_seconds: after which nothing is
    launched a sixth time. A device that fails leaves the recording and a sentence.
    """
    bench = Bench(device, max_seconds)

    def on_the_card(mix: str, spread: float, mean: int) -> Launched:
        return Launched(recording().at(PROMPTS, mix, spread, mean))

    def measuring(mix: str, spread: float, mean: int) -> Measuring:
        shown = on_the_card(mix, spread, mean)
        for here in bench.measuring(mix, spread, mean):
            shown = shown if here is None else replace(shown, here=here)
            yield shown

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": lambda found: figures.launches(found.recorded.times, card.recording().card, found.here),
        "summary": rows,
        "title": "One batch in every layout",
        "badge": recording().badge,
        "beside": False,
    }
    return MeasuringExplorer(Explorer(on_the_card, **shared), measuring, **shared)


def rows(found: Launched) -> list[tuple[str, ...]]:
    """Seconds of each layout, and times the packed one."""
    columns = [(recording().card, found.recorded.times)]
    if found.here.times:
        columns.append((f"measured: {found.here.where}", found.here.times))
    table: list[tuple[str, ...]] = [("", *(name for where, _ in columns for name in (where, "times packed")))]
    for layout in LAYOUTS:
        table.append((layout, *(cell for _, times in columns for cell in _cells(times, layout))))
    return table


def _cells(times: Any, layout: str) -> tuple[str, str]:
    if layout not in times or PACKED not in times:
        return "-", "-"
    return seconds(times[layout]), f"{times[layout] / times[PACKED]:.2f}"
