"""The night of the ticket: a static batcher while traffic falls and comes back. What an operator sees, hour by hour."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course import policies
from course.engine.serving import serve
from course.lessons.lab04.three_batchers import BUDGET, SLOTS, STEP
from course.policies import Policy
from course.workload import Workload, lengths

HOUR = 3_600  # seconds
EVENING = 20  # o'clock, when the graphs begin
RATES = (3, 3, 2, 1, 0.5, 0.2, 0.2, 0.2, 0.5, 1, 2, 3)  # requests/s, hour by hour


@dataclass(frozen=True)
class Night:
    """The graphs of one run: a value for each hour. Rates in requests/s, times in seconds.

    The run itself, of millions of steps, is not kept.
    """

    requests: int
    rate: np.ndarray
    median: np.ndarray
    median_wait: np.ndarray
    busy: np.ndarray


def load(seed: int = 0) -> Workload:
    """Arrivals at RATES, each hour a Poisson process; prompts and answers as in the chat."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(np.array(RATES) * HOUR)
    arrival = np.concatenate([np.sort(rng.uniform(h * HOUR, (h + 1) * HOUR, n)) for h, n in enumerate(counts)])
    drawn = Workload.fixed(
        rate=1,
        num_requests=len(arrival),
        prompt_tokens=512,
        output_tokens=lengths.lognormal(256, cv=1),
        seed=seed,
    )
    return Workload(arrival, drawn.prompt_tokens, drawn.output_tokens)


@lru_cache(maxsize=2)
def night(continuous: bool = False) -> Night:
    """The night with the static batcher, or with what repairs it."""
    policy: Policy = policies.Continuous(SLOTS, BUDGET) if continuous else policies.Static(SLOTS)
    run = serve(load(), policy, STEP)
    edges = np.arange(len(RATES) + 1) * HOUR
    hour = np.searchsorted(edges, run.arrival, side="right") - 1
    begun = np.searchsorted(edges, run.steps.end - run.steps.seconds, side="right") - 1
    hours = range(len(RATES))
    return Night(
        requests=len(run),
        rate=np.bincount(hour, minlength=len(RATES)) / HOUR,
        median=np.array([np.median(run.e2e[hour == h]) for h in hours]),
        median_wait=np.array([np.median(run.queue_wait[hour == h]) for h in hours]),
        busy=np.bincount(begun, run.steps.seconds, minlength=len(RATES))[: len(RATES)] / HOUR,
    )
