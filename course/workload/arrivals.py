"""When requests arrive: gaps between arrivals, bursts, think times. Pure functions from a random stream to seconds."""

from math import ceil

import numpy as np

from course.base.settings import MAX_REQUESTS, real

# Bounds of every rate [requests/s]: outside them the clock runs out of digits, and the number is a typing error.
LOWEST_RATE, HIGHEST_RATE = 1e-9, 1e9


def checked_rate(rate: float, name: str = "rate") -> float:
    """`rate` [requests/s] if it is a usable number; else ValueError."""
    try:
        return real(name, rate, low=LOWEST_RATE, high=HIGHEST_RATE)
    except ValueError as error:
        hint = (
            "; for all requests at once use Workload.fixed(interval=0, ...)"
            if isinstance(rate, float) and rate == float("inf")
            else ""
        )
        raise ValueError(f"{error}{hint}") from None


def checked_cv(cv: float, name: str = "cv") -> float:
    """`cv`, from 0 to 100; 0 if it is so small (below 1e-8) that the gamma shape 1 / cv^2 would overflow.

    Above 100 (shape 1e-4) most draws underflow to 0, and no sample of a usable size has the mean.
    """
    cv = real(name, cv, low=0, high=100)
    return cv if cv >= 1e-8 else 0.0


def gaps(rng: np.random.Generator, mean: float, cv: float, n: int) -> np.ndarray:
    """`n` independent durations [s] with this mean and coefficient of variation.

    A gamma distribution of shape 1 / cv^2 and scale mean cv^2 has exactly these two moments. cv = 1 is the exponential
    (arrivals form a Poisson process), cv = 0 is constant.
    """
    if cv == 0:
        return np.full(n, mean)
    return rng.gamma(1 / cv**2, mean * cv**2, n) if cv != 1 else rng.exponential(mean, n)


def renewal(rng: np.random.Generator, rate: float, cv: float, n: int) -> np.ndarray:
    """`n` arrival times [s] with independent gaps of mean 1 / rate; the first arrival comes after the first gap."""
    if cv == 0:
        return np.arange(1, n + 1) / rate  # a sum of n equal gaps would drift by n roundings
    return np.cumsum(gaps(rng, 1 / rate, cv, n))


def every(rng: np.random.Generator, interval: float, n: int) -> np.ndarray:
    """`n` arrival times [s], one each `interval` seconds; nothing is drawn."""
    return interval * np.arange(1, n + 1)


def on_off(rng: np.random.Generator, rate: float, on_fraction: float, period: float, n: int) -> np.ndarray:
    """`n` arrival times [s] of a source that alternates between a Poisson stream and silence.

    On and off periods are exponential with means on_fraction x period and (1 - on_fraction) x period; while on,
    requests come at rate / on_fraction, so the long-run rate is `rate` (an interrupted Poisson process). The source
    starts in its steady state: on with probability on_fraction.
    """
    cycles = n / (rate * period)
    if cycles > MAX_REQUESTS:
        raise ValueError(
            f"{n:,} requests at {rate:g}/s span {cycles:.0e} periods of {period:g} s: make the period longer "
            "(bursts this short are as good as Poisson arrivals)"
        )
    busy = np.cumsum(rng.exponential(on_fraction / rate, n))  # arrivals on a clock that stands still while off
    starts_on = rng.random() < on_fraction
    # Where each on period ends on that clock; drawn in batches until the last arrival is covered.
    ends = np.empty(0)
    while not ends.size or ends[-1] < busy[-1]:
        more = np.cumsum(rng.exponential(on_fraction * period, ceil(cycles) + 16))
        ends = np.concatenate([ends, more + (ends[-1] if ends.size else 0.0)])
    silent = np.cumsum(rng.exponential((1 - on_fraction) * period, ends.size + 1))
    if starts_on:  # no silence before the first on period
        silent = np.concatenate([[0.0], silent[:-1]])
    return busy + silent[np.searchsorted(ends, busy)]
