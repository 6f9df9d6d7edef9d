"""The highest rate at which a policy keeps its promises: a bisection for each seed, an interval over the seeds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np

from course.base.settings import quote, real
from course.engine.promises import share_within_slo
from course.engine.serving import serve
from course.memory.kvcache import KVCache
from course.policies.base import Policy
from course.steptime import StepTime
from course.sweep.executors import OneProcess
from course.sweep.grid import seeds_of
from course.workload import Workload
from course.workload.arrivals import HIGHEST_RATE

ALONE = 1e-4
"""Requests/s at which nobody meets another: one in three hours."""
Load = Callable[[float, int], Workload]


@dataclass(frozen=True)
class HighestRate:
    """Requests/s. requests_per_s: the mean over seeds. low, high: its 95% interval (Student's t); NaN with one seed.

    by_seed: the highest rate of each that kept the SLO, to within `precision` of itself.
    """

    requests_per_s: float
    low: float
    high: float
    by_seed: tuple[float, ...]
    precision: float

    def __str__(self) -> str:
        between = "" if self.low != self.low else f" ({self.low:.3g} to {self.high:.3g})"
        return f"{self.requests_per_s:.3g} requests/s{between}"


def capacity(
    policy: Policy,
    step_time: StepTime,
    cache: KVCache | None,
    load: Load | Workload,
    slo: Any = None,
    *,
    share: float = 0.95,
    seeds: int | Iterable[int] = 5,
    precision: float = 0.01,
    executor: Any = None,
) -> HighestRate:
    """The highest rate [requests/s] at which `share` of the requests, and of each class of them, are within their SLO.

    load: load(rate, seed) draws the requests, such as lambda rate, seed: Workload.poisson(rate, 2_000, ..., seed=seed);
        or a Workload, which is scaled to each rate and has no seeds. Many more requests than the queue ever holds: an
        overload that ends soon breaks no promise.
    slo: an SLO for all, SLO(ttft=0.5, tpot=0.02), or a mapping of SLOs by class; None if the requests bring theirs.
    seeds: how many, from 0, or which. Each has its own bisection, over the same draws at every rate.
    precision: relative, of each bisection. executor: as in `sweep`, one task a seed; None is this process.

    The share is taken to fall with the rate; where it does not, one of its crossings is found. Raises ValueError if
    even a request alone is too slow, if every rate keeps the SLO, and as `serve` does.
    """
    share = real("share", share, above=0, high=1)
    precision = real("precision", precision, low=1e-9, high=0.5)
    if isinstance(load, Workload):
        if not (isinstance(seeds, int) and seeds in (1, 5)):
            raise ValueError(
                "seeds have no effect on a Workload: give load(rate, seed), which draws one, or leave them out"
            )
        numbers = [0]
    elif callable(load):
        numbers = seeds_of(seeds)
    else:
        raise ValueError(f"load must be a function of a rate and a seed, or a Workload, not {quote(load)}")
    workers = OneProcess() if executor is None else executor
    jobs = [workers.submit(_highest, policy, step_time, cache, load, slo, share, seed, precision) for seed in numbers]
    return _interval([job.result() for job in jobs], precision)


def _interval(rates: list[float], precision: float) -> HighestRate:
    mean = float(np.mean(rates))
    if len(rates) < 2:
        return HighestRate(mean, nan, nan, tuple(rates), precision)
    from scipy.stats import t

    half = float(t.ppf(0.975, len(rates) - 1)) * float(np.std(rates, ddof=1)) / sqrt(len(rates))
    return HighestRate(mean, mean - half, mean + half, tuple(rates), precision)


def _highest(
    policy: Policy, step_time: StepTime, cache: KVCache | None, load: Load | Workload, slo: Any,
    share: float, seed: int, precision: float,
) -> float:  # fmt: skip
    """The bisection of one seed: doubled or halved until the SLO is between two rates, then cut by the middle."""

    def holds(rate: float) -> bool:
        drawn = load.scaled(rate) if isinstance(load, Workload) else load(rate, seed)
        run = serve(drawn, policy, step_time, cache)
        by = None if drawn.class_ is None else "class"
        return min(share_within_slo(run, by, slo=slo).values()) >= share

    good, bad, rate = 0.0, 0.0, 1.0
    while not (good and bad):
        if holds(rate):
            good, rate = rate, 2 * rate
        else:
            bad, rate = rate, rate / 2
        if rate > HIGHEST_RATE:
            raise ValueError(f"the SLO holds at every rate up to {good:.3g}/s: it is no limit, or the requests are few")
        if rate < ALONE:
            raise ValueError(f"the SLO does not hold at {bad:.3g}/s either: a request alone is slower than that")
    while bad / good > 1 + precision:
        middle = sqrt(good * bad)
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
