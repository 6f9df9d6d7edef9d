"""The second scenario of lab 10, deeper: four replicas, 40 system prompts, and which request goes where."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from course.engine.fleet import Fleet
from course.engine.routes import ByPrefix, RoundRobin
from course.engine.run import Run
from course.engine.serving import Engine
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab10.one_prompt import BLOCK_SIZE, STEP
from course.memory.kvcache import KVCache
from course.policies import Continuous
from course.workload import Workload

REPLICAS, TENANTS = 4, 40
PROMPT, OWN, ANSWER = 3_040, 163, 120  # tokens: of a tenant's system prompt, of the rest, of the answer
MANY, RATE = 4_000, 40.0  # requests, requests/s
SLOTS, BUDGET, BLOCKS = 64, 4_096, 4_500
ROUTES = {"round robin": RoundRobin, "by prefix": ByPrefix}


@lru_cache(maxsize=4)  # 22 MB each
def routed(route: str = "round robin", seed: int = 0, blocks: int = BLOCKS, replicas: int = REPLICAS) -> Run:
    """All four as one run."""
    load = Workload.poisson(RATE, MANY, OWN, ANSWER, seed).with_documents(TENANTS, PROMPT, 0, BLOCK_SIZE, seed)
    cache = KVCache(blocks, BLOCK_SIZE, prefix_caching=True)
    engines = [Engine(Continuous(SLOTS, BUDGET), STEP, cache) for _ in range(replicas)]
    return Fleet(engines, ROUTES[route]()).serve(load)


def hit_rate(run: Run) -> float:
    """Share of the prompt tokens that were found at the first admission."""
    return run.summary()["prefix_hit_rate_first"]


def four_replicas() -> Table:
    """The two routes side by side."""
    rows: list[tuple[str, ...]] = [("", "tokens found", "mean TTFT", "p99")]
    for route in ROUTES:
        run = routed(route)
        times = float(run.ttft.mean()), float(np.percentile(run.ttft, 99))
        rows.append((route, f"{hit_rate(run):.0%}", *map(seconds, times)))
    return table(rows, f"{MANY:,} requests at {RATE:g}/s, one seed [{STEP.simulated}]")
