"""Recorded steps over the batch, a curve fitted to the first of them, its knee, and what a token then costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from course.base.settings import whole
from course.figures.words import seconds
from course.lessons.lab02.one_step import points
from course.models import prices
from course.steptime import Curve, fit

CONTEXTS = (256, 1_024, 4_096)  # tokens of each sequence
CONTEXT, MOST, PRICE = 1_024, 256, prices.per_hour("H100")  # tokens, sequences, dollars an hour
LARGEST = 256
"""The batch at which predictions are compared."""


def dollars(batch: float, step: float, price: float) -> float:
    """Dollars for a million tokens, where every step of `step` seconds brings `batch` tokens. price: an hour."""
    return price / 3_600 * step / batch * 1e6


@dataclass(frozen=True)
class OneCurve:
    """A curve through the recorded points up to `most` sequences, and where the slider of the batch stands.

    batches, steps: all recorded points of this context [sequences, seconds]. price: dollars an hour.
    """

    context: int
    most: int
    batch: int
    price: float
    batches: np.ndarray
    steps: np.ndarray
    curve: Curve

    @property
    def used(self) -> np.ndarray:
        """Which of the points the curve was fitted to."""
        return self.batches <= self.most

    @property
    def step(self) -> float:
        """Seconds of a step of the batch, by the curve."""
        return float(self.curve.seconds(self.batch))

    @property
    def cost(self) -> float:
        """Dollars for a million tokens at the batch, by the curve."""
        return dollars(self.batch, self.step, self.price)

    @property
    def largest(self) -> float:
        """Seconds of a step of 256, by the curve."""
        return float(self.curve.seconds(LARGEST))

    @property
    def recorded_largest(self) -> float:
        """The same as recorded; NaN where it was not."""
        found = self.steps[self.batches == LARGEST]
        return float(found[0]) if len(found) else float("nan")


def one_curve(context: int = CONTEXT, most: int = MOST, batch: int = 1, price: float = PRICE) -> OneCurve:
    """The curve of the points up to `most` sequences."""
    batch = whole("batch", batch)
    return OneCurve(context, most, batch, price, *points(context), _fitted(context, most))


@cache
def _fitted(context: int, most: int) -> Curve:
    batches, steps = points(context)
    return fit(batches[batches <= most], steps[batches <= most])


def rows(found: OneCurve) -> list[tuple[str, str]]:
    """The constants with their intervals, the knee, and the batch: step, tokens/s and cost."""
    curve = found.curve
    low, high = (1e3 * float(value) for value in curve.band(LARGEST))
    recorded = found.recorded_largest
    return [
        ("t0", f"{1e3 * curve.t0:.2f} ms"),
        ("c", f"{1e3 * curve.c:.2g} ms"),
        ("alpha", f"{curve.alpha:.2f} ({curve.alpha_interval[0]:.2f} to {curve.alpha_interval[1]:.2f})"),
        ("knee", f"{curve.knee:.0f} sequences"),
        (f"step of {LARGEST}, band", f"{low:.3g} to {high:,.3g} ms" if high < 1e4 else "any"),
        (f"step of {LARGEST}, curve", seconds(found.largest)),
        (f"step of {LARGEST}, recorded", seconds(recorded) if np.isfinite(recorded) else "not recorded"),
        ("step of this batch", seconds(found.step)),
        ("tokens/s", f"{found.batch / found.step:,.0f}"),
        ("a million tokens", f"{found.cost:.3g} dollars"),
    ]
