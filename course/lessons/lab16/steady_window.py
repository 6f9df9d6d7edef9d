"""Which part of a test counts: the start of a closed loop, a window in it, and how sure a percentile of it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import bdtr

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab16.load_test import OUTPUT, OUTPUT_CV, PROMPT, STEP, seconds
from course.workload import Workload, lengths

REQUESTS = 3_000
USERS = (16, 32, 64, 128)
PERCENTILES = (50, 90, 95, 99)


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


@dataclass(frozen=True)
class Window:
    """A closed-loop test of `users`, and the window [start, end) of it that is counted, by the time of sending [s]."""

    run: Run
    users: int
    start: float
    end: float

    @property
    def inside(self) -> np.ndarray:
        """Which requests were sent in the window."""
        return (self.run.arrival >= self.start) & (self.run.arrival < self.end)

    @property
    def ttft(self) -> np.ndarray:
        """TTFT of those [s]."""
        return self.run.ttft[self.inside]

    @property
    def tokens_per_second(self) -> float:
        """Output tokens computed in the window over its seconds."""
        steps = self.run.steps
        counted = (steps.end > self.start) & (steps.end <= self.end)
        return float(steps.useful[counted].sum()) / (self.end - self.start)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Says so where nobody sent anything in the window."""
        if self.inside.any():
            return ()
        return ("Nobody sent a request in this window: the test has ended. Move the window to the left.",)


@lru_cache(maxsize=16)
def closed_loop(users: int) -> Run:
    """`users` who all begin at time 0 and ask again as soon as they are answered; 3,000 requests or a few less."""
    load = Workload.closed_loop(users, 0, REQUESTS // users, PROMPT, lengths.lognormal(OUTPUT, OUTPUT_CV), seed=0)
    return serve(load, policies.Continuous(max_num_seqs=256, max_num_batched_tokens=2_048), STEP)


def compute_tests() -> None:
    """Serve every test that `window` may have to show, so that no move of a slider has to wait for one."""
    for users in USERS:
        closed_loop(users)


def window(users: int, start: float, length: float) -> Window:
    """The test and the window of `length` seconds that starts `start` seconds into it."""
    return Window(closed_loop(users), users, start, start + length)


def rows(result: Window) -> list[tuple[str, ...]]:
    """Percentiles of TTFT in the window with their intervals, beside those of the whole run."""
    inside = result.ttft
    table: list[tuple[str, ...]] = [("", "in the window", "95% sure between", "whole run")]
    for q in PERCENTILES:
        whole = seconds(float(np.percentile(result.run.ttft, q)))
        if not len(inside):
            table.append((f"TTFT p{q}", "none", "", whole))
            continue
        found = percentile_interval(inside, q)
        ends = [seconds(end) if np.isfinite(end) else "no bound" for end in (found.low, found.high)]
        table.append((f"TTFT p{q}", seconds(found.value), " and ".join(ends), whole))
    throughput = float(result.run.workload.output_tokens.sum()) / result.run.makespan
    table.append(("requests", f"{len(inside):,}", "", f"{len(result.run):,}"))
    table.append(("output, tokens/s", f"{result.tokens_per_second:,.0f}", "", f"{throughput:,.0f}"))
    return table
