"""The highest rate at which a policy keeps its promises: a bisection for each seed, an interval over the seeds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import nan, sqrt
from typing import Any

import numpy as np

from course.base.settings import flag, quote, real
from course.engine.capacity import capacity as of_one_draw
from course.engine.promises import share_within_slo
from course.engine.serving import serve
from course.memory.kvcache import KVCache
from course.policies.base import Policy
from course.steptime import StepTime
from course.sweep.executors import OneProcess, extra
from course.sweep.fast import ENGINE, compiled
from course.sweep.grid import seeds_of
from course.workload import Workload
from course.workload.arrivals import HIGHEST_RATE

ALONE = 1e-4
"""Requests/s at which nobody meets another: one in three hours."""
Load = Callable[[int], Workload]


@dataclass(frozen=True)
class HighestRate:
    """Requests/s. requests_per_s: the mean over seeds. low, high: its 95% interval (Student's t); NaN with one seed.

    by_seed: the highest rate of each that kept the SLO, to `within` of itself. loop: which served, as in a Row.
    """

    requests_per_s: float
    low: float
    high: float
    by_seed: tuple[float, ...]
    within: float
    loop: str = field(default=ENGINE, compare=False)

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
    by: str | None = None,
    within: float = 0.01,
    executor: Any = None,
    fast: bool = False,
) -> HighestRate:
    """The highest rate [requests/s] at which `share` of the requests keep their SLO: `engine.capacity` of each seed.

    load: load(seed) draws the requests, such as lambda seed: Workload.poisson(1, 2_000, 512, 128, seed=seed), which
        are scaled to each rate; or a Workload, which has no seeds. Many more requests than the queue ever holds: an
        overload that ends soon breaks no promise.
    slo: an SLO for all, SLO(ttft=0.5, tpot=0.02), or a mapping of SLOs by class; None if the requests bring theirs.
    by: "class" or "tenant", each of which must keep its share; None: all together.
    seeds: how many, from 0, or which. within: of each bisection, as a share of the rate.
    executor: with `submit`, one task a seed; None is this process. fast: as for `sweep`.

    The share is taken to fall with the rate; where it does not, one of its crossings is found. Raises ValueError if
    even a request alone is too slow, if every rate keeps the SLO, and as `serve` does; ImportError for fast
    without numba.
    """
    share = real("share", share, above=0, high=1)
    within = real("within", within, low=1e-6, high=1)
    if flag("fast", fast):
        extra("numba", "fast")
    if isinstance(load, Workload):
        if not (isinstance(seeds, int) and seeds in (1, 5)):
            raise ValueError("seeds have no effect on a Workload: give load(seed), which draws one, or leave them out")
        numbers = [0]
    elif callable(load):
        numbers = seeds_of(seeds)
    else:
        raise ValueError(f"load must be a function of a seed, or a Workload, not {quote(load)}")
    workers = OneProcess() if executor is None else executor
    loads = [load] if isinstance(load, Workload) else [load(seed) for seed in numbers]
    jobs = [workers.submit(_highest, fast, policy, step_time, cache, one, slo, share, by, within) for one in loads]
    rates, loops = zip(*(job.result() for job in jobs), strict=True)
    return _interval(rates, within, ", ".join(sorted({loop for each in loops for loop in each.split(", ")})))


def _interval(rates: tuple[float, ...], within: float, loop: str) -> HighestRate:
    mean = float(np.mean(rates))
    if len(rates) < 2:
        return HighestRate(mean, nan, nan, rates, within, loop)
    from scipy.stats import t

    half = float(t.ppf(0.975, len(rates) - 1)) * float(np.std(rates, ddof=1)) / sqrt(len(rates))
    return HighestRate(mean, mean - half, mean + half, rates, within, loop)


def _highest(fast: bool, *asked: Any) -> tuple[float, str]:
    """The highest rate of one draw, and which loop served."""
    with compiled(fast and find_spec("numba") is not None) as loop:
        return _bracketed(*asked), loop()


def _bracketed(
    policy: Policy, step_time: StepTime, cache: KVCache | None, load: Workload, slo: Any, share: float, by: str | None,
    within: float,
) -> float:  # fmt: skip
    """The highest rate of one draw: doubled or halved until it lies between two rates, then by halving."""

    def holds(rate: float) -> bool:
        run = serve(load.scaled(rate), policy, step_time, cache)
        return min(share_within_slo(run, by, slo=slo).values()) >= share

    good, bad, rate = 0.0, 0.0, load.rate if ALONE <= load.rate <= HIGHEST_RATE else 1.0
    while not (good and bad):
        if holds(rate):
            good, rate = rate, 2 * rate
        else:
            bad, rate = rate, rate / 2
        if rate > HIGHEST_RATE:
            raise ValueError(f"the SLO holds at every rate up to {good:.3g}/s: it is no limit, or the requests are few")
        if rate < ALONE:
            raise ValueError(f"the SLO does not hold at {bad:.3g}/s either: a request alone is slower than that")
    return of_one_draw(load, policy, step_time, cache, slo=slo, share=share, by=by, low=good, high=bad, within=within)
