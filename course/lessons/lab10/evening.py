"""The ticket of lab 10: a pool that shrank, and a hit rate that rose.

Questions behind a system prompt of 512 tokens, with long answers, on the H200 of the lab; a second model moved in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab10.one_prompt import BLOCK_SIZE, STEP, engine, pool
from course.memory.kvcache import KVCache
from course.workload import Workload, lengths

RATE, MANY = 10.0, 300  # requests/s, requests
SHARED, OWN = 512, 1_024  # tokens of a prompt
ANSWER, ANSWER_CV = 1_000, 1.0
BEFORE, SINCE = 0.90, 0.22
"""gpu_memory_utilization until Tuesday, and since."""


@dataclass(frozen=True)
class Evening:
    """One run, and what a dashboard shows of it."""

    run: Run

    @cached_property
    def rates(self) -> tuple[float, float]:
        """Hit rate of all admissions, and of each request's first."""
        counts = self.run.summary()
        return counts["prefix_hit_rate"], counts["prefix_hit_rate_first"]

    def rate_by(self, moments: np.ndarray | float) -> np.ndarray:
        """Hit rate of all look-ups until each moment [s]: one after a preemption counts from its own step on."""
        log = self.run.log
        _, known, found = np.asarray(log.lookups).T  # in order, one for each stay
        at = log.start_of(np.sort(np.asarray(log.stays)[:, 1]))
        rate = np.cumsum(found) / np.cumsum(known)
        return rate[np.maximum(np.searchsorted(at, moments, side="right") - 1, 0)]

    @cached_property
    def preemptions(self) -> int:
        """How often a request lost its blocks."""
        return int(self.run.preempted.sum())

    @cached_property
    def p95_ttft(self) -> float:
        """The 95th percentile of TTFT [s]."""
        return float(np.percentile(self.run.ttft, 95))

    @cached_property
    def longest_gap(self) -> float:
        """The longest time between two tokens of one answer [s]."""
        return float(self.run.itl_weighted[0].max())


@lru_cache(maxsize=64)
def evening(gpu_memory_utilization: float = SINCE, times: float = 1.0, seed: int = 0, shared: int = SHARED) -> Evening:
    """An evening with this share of the card for the engine. times: of the rate."""
    load = Workload.poisson(times * RATE, MANY, OWN, lengths.lognormal(ANSWER, ANSWER_CV), seed)
    load = load.with_system_prompt(shared, BLOCK_SIZE)
    cache = KVCache(pool(gpu_memory_utilization), BLOCK_SIZE, prefix_caching=True)
    return Evening(serve(load, engine(), STEP, cache))
