"""A curve that is drawn before it is seen: axes, what is true, and how a drawing compares. No widgets here.

A drawing is one value in each column of the axes, so that a mouse and arrow keys say the same. What is true is computed
when a drawing is committed, and never before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from course.explore.amounts import singular

Points = Sequence[tuple[float, float]]
CLOSE_SHARE, CLOSE_FACTOR = 0.06, 1.25
"""Mean distance that counts as right: a share of a linear axis, a factor on a logarithmic one."""
COLUMNS = (4, 10)
FLAT = 0.06
"""Share of the axis within which a curve stays flat."""


@dataclass(frozen=True)
class Axis:
    """label: with its unit in brackets. low, high: its ends. ticks: where numbers stand. log: whether logarithmic.

    Raises ValueError for ends that are no axis.
    """

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"axis {self.label!r}: {self.low:g} to {self.high:g} is no {'log ' * self.log}axis")

    def place(self, value: float) -> float:
        """From 0 at the low end to 1 at the high one."""
        scale = math.log if self.log else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))

    def between(self, low: float, high: float, share: float) -> float:
        """The value at this share of the way from one to another, along the axis."""
        return low * (high / low) ** share if self.log else low + share * (high - low)

    def inside(self, value: float) -> float:
        """The value, or the end of the axis that it is beyond."""
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Belief:
    """What somebody draws who believes something.

    when: whether a drawing, one value a column, shows it. example: a curve that shows it and no other belief.
    (The nearest of several curves would tell people what they did not draw.)
    """

    when: Callable[[Sequence[float]], bool]
    example: Callable[[float], float]


@dataclass(frozen=True)
class Judgement:
    """How a drawing compares.

    close: whether it counts as right. apart: mean distance, a share of a linear axis, a factor on a logarithmic one.
    worst: the column that is off most. belief: id of the belief that it shows, "" for none. true: the true value in
    each column. sentence: the largest gap, and both shapes.
    """

    close: bool
    apart: float
    worst: int
    belief: str
    true: tuple[float, ...]
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """What is to be drawn.

    columns: where a value is set, from left to right. given: columns whose value is told, as anchors.
    truth: the points of the true curve in order of x, over all columns; asked for once, after the first drawing.
    named: from a column to words, such as "{x:g} slots". value: the same for a value, "{y} times"; y has three digits.
    beliefs: by their ids in docs/misconceptions.md. close: see CLOSE_SHARE.

    Raises ValueError for columns outside of the axis, or too few or many.
    """

    x: Axis
    y: Axis
    columns: tuple[float, ...]
    truth: Callable[[], Points]
    named: str = "{x:g}"
    value: str = "{y}"
    given: Mapping[float, float] = field(default_factory=dict)
    beliefs: Mapping[str, Belief] = field(default_factory=dict)
    close: float | None = None

    def __post_init__(self) -> None:
        inside = all(self.x.low <= x <= self.x.high for x in self.columns)
        if not COLUMNS[0] <= len(self.columns) <= COLUMNS[1] or not inside:
            raise ValueError(f"{self.x.label!r}: give {COLUMNS[0]} to {COLUMNS[1]} columns on the axis")
        if not set(self.given) < set(self.columns):
            raise ValueError(f"{self.x.label!r}: what is given stands in some of the columns, and not in all")

    @cached_property
    def points(self) -> Points:
        """The true curve."""
        return [(float(x), float(y)) for x, y in self.truth()]

    @cached_property
    def true(self) -> tuple[float, ...]:
        """The true value in each column."""
        return tuple(self.at(x) for x in self.columns)

    def at(self, x: float) -> float:
        """The true curve at x, straight on the scales of these axes between its points."""
        for (xa, ya), (xb, yb) in pairwise(self.points):
            if x <= xb:
                share = (self.x.place(x) - self.x.place(xa)) / (self.x.place(xb) - self.x.place(xa))
                return self.y.between(ya, yb, share)
        return self.points[-1][1]

    def place(self, column: float) -> str:
        """Return a column in words: "1 slot", "8 slots", "1 request/s"."""
        return singular(self.named.format(x=column))

    def words(self, y: float) -> str:
        """A value as sentences have it, to three digits."""
        return self.value.format(y=f"{float(f'{y:.3g}'):,.10g}")

    def cleaned(self, raw: Any) -> tuple[float, ...] | None:
        """A drawing from outside: a number in each column, anchors where they are; None for what is none."""
        if not isinstance(raw, list | tuple) or len(raw) != len(self.columns):
            return None
        if not all(isinstance(y, int | float) and not isinstance(y, bool) and abs(y) < 1e300 for y in raw):
            return None
        return tuple(self.given.get(x, self.y.inside(float(y))) for x, y in zip(self.columns, raw, strict=True))

    def judge(self, drawn: Sequence[float]) -> Judgement:
        """Compare a drawing with the truth, column by column."""
        free = [i for i, x in enumerate(self.columns) if x not in self.given]
        off = {i: abs(self.y.place(drawn[i]) - self.y.place(self.y.inside(self.true[i]))) for i in free}
        mean, worst = sum(off.values()) / len(free), max(free, key=off.__getitem__)
        apart = (self.y.high / self.y.low) ** mean if self.y.log else mean
        close = apart <= (self.close or (CLOSE_FACTOR if self.y.log else CLOSE_SHARE))
        held = [name for name, belief in self.beliefs.items() if not close and belief.when(drawn)]
        return Judgement(close, apart, worst, held[0] if held else "", self.true, self._sentence(drawn, worst, close))

    def _sentence(self, drawn: Sequence[float], worst: int, close: bool) -> str:
        mine, right = drawn[worst], self.true[worst]
        there = f"At {self.place(self.columns[worst])} you drew {self.words(mine)}; it is " + (f"{self.words(right)}.")
        if close:
            return f"Close all along. The largest gap: {there[0].lower()}{there[1:]}"
        if self.y.log or min(mine, right) > 0.1 * self.y.high:
            times = max(mine, right) / min(mine, right)
            there += f" That is {float(f'{times:.2g}'):g} times too {'high' if mine > right else 'low'}."
        own, true = self.shape(drawn), self.shape(self.true)
        same = f"Yours {own}, as the true curve does." if own == true else f"Yours {own}; the true curve {true}."
        return f"{there} {same}"

    def shape(self, values: Sequence[float]) -> str:
        """What a curve does, in words: "rises mostly at the end"."""
        places = [(self.x.place(x), self.y.place(self.y.inside(y))) for x, y in zip(self.columns, values, strict=True)]
        (xa, ya), (xm, ym), (xb, yb) = places[0], places[len(places) // 2], places[-1]
        if max(y for _, y in places) - min(y for _, y in places) < FLAT:
            return "stays flat"
        if (ym - ya) * (yb - ym) < 0 and min(abs(ym - ya), abs(yb - ym)) > FLAT:
            return "rises and falls again" if ym > ya else "falls and rises again"
        first, second = abs(ym - ya) / (xm - xa), abs(yb - ym) / (xb - xm)
        way = "rises" if yb > ya else "falls"
        if min(first, second) > 0.6 * max(first, second):  # what an eye calls straight
            return f"{way} evenly"
        return f"{way} mostly at the {'start' if first > second else 'end'}"
