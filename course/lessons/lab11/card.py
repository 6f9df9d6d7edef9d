"""What an H200 took for each layout, attention of one layer and whole steps: a recording of tests/bench/padding.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from course.base.settings import quote
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab11 import batch
from course.lessons.lab11.batch import LAYOUTS, MEAN, MIXES, PACKED, RECTANGLE, SEED, SPREAD
from course.steptime import files

RECORDING = "h200_padding"
PROMPTS, DECODES, STEP, DECODE_STEP = KINDS = (
    "attention, prompts", "attention, decodes", "whole step, prompts", "whole step, decodes",
)  # fmt: skip
NAMES = dict(zip(KINDS, ("prompts", "decodes", "step", "decode step"), strict=True))
DRAWS = 5
"""Of prompts at a spread of 1; of whole steps of prompts three were recorded."""


@dataclass(frozen=True)
class OnCard:
    """Seconds by layout, of the kind that was launched, and what each layout computes for it."""

    kind: str
    mix: str
    spread: float
    mean: int
    seed: int
    times: Mapping[str, float]

    @property
    def prompts(self) -> batch.Lengths:
        """Tokens of each prompt, or those behind which each decode is computed."""
        return batch.lengths(self.mix, self.spread, self.mean, self.seed)

    def ratio(self, layout: str) -> float:
        """Seconds, times those of the packed batch."""
        return self.times[layout] / self.times[PACKED]

    def tokens(self, layout: str) -> float:
        """Tokens that are computed, or read by decodes, times those of the packed batch."""
        return self._of(layout)[0]

    def pairs(self, layout: str) -> float:
        """Pairs of attention, times those of the packed batch."""
        return self._of(layout)[1]

    def _of(self, layout: str) -> tuple[float, float]:
        mine, packed = (batch.launches(self.prompts, one) for one in (layout, PACKED))
        return batch.tokens(mine) / batch.tokens(packed), batch.pairs(mine) / batch.pairs(packed)


def _key(mix: str, spread: float, mean: int, seed: int) -> str:
    return f"{MIXES.index(mix)} {spread:g} {mean} {seed}"


class Recorded(files.Recording):
    """What was launched on a card."""

    def __init__(self, name: str) -> None:
        self._found = files.read("padding", name)
        self.provenance = self._found["provenance"]

    def at(self, kind: str, mix: str, spread: float, mean: int = MEAN, seed: int = SEED) -> OnCard:
        """Seconds by layout at one setting. Raises ValueError for one that was not recorded."""
        found = self._found[NAMES[kind]].get(_key(mix, spread, mean, seed))
        if found is None:
            raise ValueError(f"{quote(kind)} was not recorded with {mix}, spread {spread:g}, mean {mean}, draw {seed}")
        times = dict(zip(LAYOUTS, found, strict=False))  # nobody launches decodes one by one
        return OnCard(kind, mix, spread, mean, seed, times)

    def draws(self, kind: str) -> list[OnCard]:
        """Of prompts at a spread of 1, those that were recorded."""
        there = [seed for seed in range(DRAWS) if _key(SPREAD, 1.0, MEAN, seed) in self._found[NAMES[kind]]]
        return [self.at(kind, SPREAD, 1.0, MEAN, seed) for seed in there]


@cache
def recording() -> Recorded:
    """The one that the lab shows."""
    return Recorded(RECORDING)


def on_the_card(kind: str = STEP, mix: str = SPREAD, spread: float = 1.0) -> OnCard:
    """What was recorded for prompts of MEAN tokens."""
    return recording().at(kind, mix, spread)


def other_draws() -> Table:
    """What a rectangle takes, times packed, for other prompts of the same spread."""
    head = ("draw", "longest", "tokens", *KINDS)
    found = {kind: {one.seed: one for one in recording().draws(kind)} for kind in KINDS}
    lines = []
    for seed, one in found[PROMPTS].items():
        each = (found[kind].get(seed) for kind in KINDS)
        times = (f"{there.ratio(RECTANGLE):.2f}" if there else "not recorded" for there in each)
        lines.append((str(seed), f"{max(one.prompts):,}", f"{one.tokens(RECTANGLE):.2f}", *times))
    return table([head, *sorted(lines)], f"a rectangle, times packed [{recording().badge}]")


def rows(found: OnCard) -> list[tuple[str, ...]]:
    """Seconds of each layout, and times the packed one."""
    lines: list[tuple[str, ...]] = [("", "time", "times packed")]
    for layout in LAYOUTS:
        if layout in found.times:
            one = seconds(found.times[layout]), f"{found.ratio(layout):.2f}"
        else:
            one = ("-", "-")
        lines.append((layout, *one))
    return lines
