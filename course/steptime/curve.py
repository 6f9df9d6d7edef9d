"""`fit`: t0 + c b^alpha through measured (batch, seconds), and how well the points know the three constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from course.base import settings
from course.steptime.power_law import PowerLaw

FEWEST = 4  # batches: three constants and something to judge them by
MOST_ALPHA = 3.0
Interval = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """A step of b decodes takes t0 + c x b^alpha seconds.

    t0_interval, c_interval, alpha_interval: the confidence intervals, where `confidence` of all such intervals hold the
    truth, if the points scatter around a curve of this form by equal shares of their seconds. error: how far a point is
    off, as a share: the root mean square, with the degrees of freedom that three constants leave. spread: covariance of
    t0, c and alpha, in seconds, times the square of Student's t; none for a curve that was not fitted.
    """

    t0: float
    c: float
    alpha: float
    t0_interval: Interval
    c_interval: Interval
    alpha_interval: Interval
    confidence: float
    error: float
    spread: tuple[tuple[float, ...], ...] = ()

    def seconds(self, batch: Any) -> Any:
        """Seconds of a step of so many decodes; a number or an array."""
        return self.t0 + self.c * np.asarray(batch, float) ** self.alpha

    def band(self, batch: Any) -> tuple[Any, Any]:
        """Lowest and highest seconds of a step of so many decodes, at this confidence for each batch by itself.

        The straight-line estimate (delta method): the curve moves with its constants along its gradient. Beyond the
        points it holds only if the curve goes on in the same form. Raises ValueError for a curve that was not fitted.
        """
        if not self.spread:
            raise ValueError("this curve has no band, since it was not fitted: make it with steptime.fit")
        b = np.asarray(batch, float)
        power = b**self.alpha
        gradient = np.stack([np.ones_like(b), power, self.c * power * np.log(b)], axis=-1)
        reach = np.sqrt(np.maximum(np.einsum("...i,ij,...j", gradient, np.array(self.spread), gradient), 0))
        middle = self.seconds(b)
        return np.maximum(middle - reach, 0), middle + reach

    @property
    def knee(self) -> float:
        """The batch whose decodes cost as much as the step itself: c b^alpha = t0; infinite if they never do."""
        return (self.t0 / self.c) ** (1 / self.alpha) if self.c > 0 and self.alpha > 0 else inf

    def step_time(self) -> PowerLaw:
        """The same as a step time, for `serve`."""
        return PowerLaw(self.t0, self.c, self.alpha)


def fit(batch: Iterable[float], seconds: Iterable[float], *, confidence: float = 0.95) -> Curve:
    """Fit t0 + c b^alpha to a measured curve: t0, c >= 0 and alpha from 0 to 3.

    Least squares of the relative errors, by `scipy.optimize.curve_fit` from several starts; the intervals are those of
    Student's t around the best constants, from its covariance, cut off at 0 and 3. They are straight-line estimates: a
    constant that lies on a limit, or a curve that hardly bends, has an interval that says little.

    batch: from 1, four different ones or more. seconds: of a step each, above 0; several of one batch may be given.
    Raises ValueError for other numbers.
    """
    from scipy.optimize import curve_fit  # half a second that only a fit needs
    from scipy.special import stdtrit

    confidence = settings.real("confidence", confidence, low=0.01, high=0.9999)
    b, y = _checked(batch, seconds)
    scale, best = float(y.min()), None
    limits = [0.0, 0.0, 0.0], [np.inf, np.inf, MOST_ALPHA]
    for alpha in (0.5, 1.0, 1.6):
        power = np.stack([np.ones_like(b), b**alpha], axis=1) / y[:, None]
        start = np.maximum(np.linalg.lstsq(power, np.ones_like(b), rcond=None)[0], 1e-3 * scale / b.max() ** alpha)
        found, spread = curve_fit(
            _law, b, y / scale, p0=[*(start / scale), alpha], sigma=y / scale, bounds=limits, x_scale="jac", ftol=1e-12,
            xtol=1e-12, gtol=1e-12, max_nfev=10_000,
        )  # fmt: skip
        misses = _law(b, *found) * scale / y - 1
        if best is None or misses @ misses < best[0]:
            best = misses @ misses, found, spread
    assert best is not None
    squares, (t0, c, alpha), spread = best
    student = float(stdtrit(len(b) - 3, (1 + confidence) / 2))
    reach = student * np.sqrt(np.diag(spread))
    unit = np.array([scale, scale, 1.0])
    middle = np.array([t0, c, alpha]) * unit
    t0, c, alpha = middle.tolist()
    low, high = np.maximum(middle - reach * unit, 0), np.minimum(middle + reach * unit, [np.inf, np.inf, MOST_ALPHA])
    of_t0, of_c, of_alpha = zip(low.tolist(), high.tolist(), strict=True)
    around = tuple(map(tuple, (student**2 * spread * np.outer(unit, unit)).tolist()))
    return Curve(t0, c, alpha, of_t0, of_c, of_alpha, confidence, sqrt(squares / (len(b) - 3)), around)


def _law(b: np.ndarray, t0: float, c: float, alpha: float) -> np.ndarray:
    return t0 + c * b**alpha


def _checked(batch: Iterable[float], seconds: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
    try:
        b, y = np.array(list(batch), float), np.array(list(seconds), float)
    except (TypeError, ValueError):
        raise ValueError(
            "a curve is two lists of numbers: batches, and the seconds that a step of each takes"
        ) from None
    if b.ndim != 1 or b.shape != y.shape:
        raise ValueError(f"a curve has one time for each batch: there are {b.size} batches and {y.size} times")
    for name, values, least in (("batch", b, 1.0), ("seconds", y, 1e-12)):
        wrong = values[~(np.isfinite(values) & (values >= least) & (values <= settings.MAX_SECONDS))]
        if wrong.size:
            raise ValueError(f"{name} must be a number from {least:g} to {settings.MAX_SECONDS:g}, not {wrong[0]:g}")
    if len(np.unique(b)) < FEWEST:
        raise ValueError(
            f"t0 + c b^alpha has three constants, and {len(np.unique(b))} different batches cannot tell them apart: "
            f"measure at least {FEWEST}"
        )
    return b, y
