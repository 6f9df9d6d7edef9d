"""Which part of a test counts: the start of a closed loop, a window in it, and how sure a percentile of it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import bdtr

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab16.load_test import OUTPUT, OUTPUT_CV, PROMPT, STEP
from course.workload import Workload, lengths

REQUESTS = 3_000


@dataclass(frozen=True)
class Interval:
    """A percentile of n values with its confidence interval by order statistics [s].

    low, high: the values of rank `low_rank` and `high_rank` (counted from 1); -inf and inf, with rank 0 and n + 1,
    where there are too few values for a bound on that side.
    """

    value: float
    low: float
    high: float
    low_rank: int
    high_rank: int


def percentile_interval(values: Sequence[float] | np.ndarray, percent: float, confidence: float = 0.95) -> Interval:
    """A percentile and an interval that holds the true one with at least this confidence, whatever the distribution.

    How many of n independent values lie below the true percentile q is binomial (n, q). Rank l is the last with
    P(fewer than l below) <= (1 - confidence) / 2, and u the first with P(u or more below) <= (1 - confidence) / 2
    (David and Nagaraja, Order Statistics, 3rd ed., section 7.1). ValueError for no values.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n, q, tail = len(ordered), percent / 100, (1 - confidence) / 2
    if not n:
        raise ValueError("there are no values, so no percentile of them: make the window longer")
    below = bdtr(np.arange(n + 1), n, q)  # P(at most k below)
    low = int(np.searchsorted(below, tail, side="right"))  # the largest rank l with P(at most l - 1) <= tail
    high = int(np.searchsorted(below, 1 - tail, side="left")) + 1
    bounded = high <= n
    return Interval(
        float(np.percentile(ordered, percent)),
        float(ordered[low - 1]) if low else -np.inf,
        float(ordered[high - 1]) if bounded else np.inf,
        low,
        high if bounded else n + 1,
    )


@lru_cache(maxsize=16)
def closed_loop(users: int) -> Run:
    """`users` who all begin at time 0 and ask again as soon as they are answered; 3,000 requests or a few less."""
    load = Workload.closed_loop(users, 0, REQUESTS // users, PROMPT, lengths.lognormal(OUTPUT, OUTPUT_CV), seed=0)
    return serve(load, policies.Continuous(max_num_seqs=256, max_num_batched_tokens=2_048), STEP)


def between(run: Run, start: float, end: float) -> tuple[np.ndarray, float]:
    """TTFT [s] of the requests that were sent in [start, end), and output tokens/s of the steps that ended there."""
    inside = (run.arrival >= start) & (run.arrival < end)
    counted = (run.steps.end > start) & (run.steps.end <= end)
    return run.ttft[inside], float(run.steps.useful[counted].sum()) / (end - start)
