"""Probabilities and roots from scipy.special alone: scipy.stats and scipy.optimize would triple the import time."""

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy


def poisson_pmf(count: np.ndarray, mean: float) -> np.ndarray:
    """P(exactly `count` events) when `mean` are expected."""
    return np.exp(xlogy(count, mean) - mean - gammaln(count + 1.0))


def binomial_pmf(count: np.ndarray, trials: int, chance: float) -> np.ndarray:
    """P(exactly `count` of `trials` succeed) when each does with probability `chance`."""
    ways = gammaln(trials + 1.0) - gammaln(count + 1.0) - gammaln(trials - count + 1.0)
    return np.exp(ways + xlogy(count, chance) + xlog1py(trials - count, -chance))


def crossing(rises_above_zero: Callable[[float], float], low: float, high: float) -> float:
    """The x in [low, high] where a function that is at most 0 at `low` and above 0 at `high` turns positive.

    Bisection to a relative 1e-12, about 40 calls.
    """
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if rises_above_zero(middle) > 0 else (middle, high)
    return high
