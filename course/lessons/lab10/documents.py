"""The first scenario of lab 10, deeper: questions about 60 documents, more than the pool holds, and who is next.

Documents of 4,000 tokens, some asked about more often than others, on the H200 of the lab with 5,000 blocks and 32
slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab10.one_prompt import BLOCK_SIZE, STEP
from course.memory.kvcache import KVCache
from course.workload import Workload

DOCUMENTS, POPULAR, SKEW = 60, 20, 0.8  # the n-th is asked about in proportion to 1 / n^SKEW
PAGES, QUESTION, ANSWER = 4_000, 69, 100  # tokens
MANY, RATE = 1_500, 20.0  # requests, requests/s
SLOTS, BUDGET, BLOCKS = 32, 4_096, 5_000
AGEING = 2.0  # seconds
ORDERS = {
    "in order": lambda: policies.Continuous(SLOTS, BUDGET),
    "longest prefix first": lambda: policies.LongestPrefixFirst(SLOTS, BUDGET),
    f"the same, ageing {AGEING:g} s": lambda: policies.LongestPrefixFirst(SLOTS, BUDGET, AGEING),
}


def questions(rate: float = RATE, seed: int = 0) -> Workload:
    """The requests."""
    load = Workload.poisson(rate, MANY, QUESTION, ANSWER, seed)
    return load.with_documents(DOCUMENTS, PAGES, SKEW, BLOCK_SIZE, seed)


@dataclass(frozen=True)
class Answered:
    """One run."""

    run: Run

    @cached_property
    def which(self) -> np.ndarray:
        """The document of each request, 0 the most popular one."""
        return np.array([ids[0] for ids in self.run.workload.prefix or ()]) // (PAGES // BLOCK_SIZE)

    @property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that were found at the first admission."""
        return self.run.summary()["prefix_hit_rate_first"]

    def mean(self, popular: bool) -> float:
        """Mean TTFT of questions about popular documents, or about the others [s]."""
        return float(self.run.ttft[(self.which < POPULAR) == popular].mean())


@lru_cache(maxsize=16)  # 9 MB each
def answered(order: str = "in order", rate: float = RATE, seed: int = 0) -> Answered:
    """Serve the questions in one of ORDERS."""
    cache = KVCache(BLOCKS, BLOCK_SIZE, prefix_caching=True)
    return Answered(serve(questions(rate, seed), ORDERS[order](), STEP, cache))


def sixty_documents() -> Table:
    """The three orders side by side."""
    rows: list[tuple[str, ...]] = [("", "tokens found", "mean TTFT", "p99", "popular", "rare")]
    for order in ORDERS:
        one = answered(order)
        times = one.run.ttft.mean(), np.percentile(one.run.ttft, 99), one.mean(True), one.mean(False)
        rows.append((order, f"{one.hit_rate:.0%}", *(seconds(float(time)) for time in times)))
    return table(rows, f"{MANY:,} questions at {RATE:g}/s, one seed [{STEP.simulated}]")
