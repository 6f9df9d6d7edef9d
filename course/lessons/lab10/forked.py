"""The third scenario of lab 10, deeper: agents that fork into branches, and tenants that may not share."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.explore.table import Table, table
from course.lessons.lab10.one_prompt import BLOCK_SIZE, STEP, engine, pool
from course.memory.kvcache import KVCache
from course.workload import Workload

AGENTS, BRANCHES, RATE = 200, 4, 1.0  # agents/s
SYSTEM, TEXT, ANSWER, TOOL = 2_000, 500, 300, 1.0  # tokens, and seconds until the branches begin
SALTED = 40  # tenants


@lru_cache(maxsize=4)
def forked() -> Run:
    """One request of each agent, and four more that begin with all of it."""
    load = Workload.agents(RATE, AGENTS, BRANCHES, TEXT, ANSWER, TOOL, SYSTEM, 0, BLOCK_SIZE)
    return serve(load, engine(), STEP, KVCache(pool(), BLOCK_SIZE, prefix_caching=True))


def found(run: Run, branches: bool) -> float:
    """Share of the prompt tokens that the branches find, or the first requests."""
    rows = [row for row in np.asarray(run.log.lookups).tolist() if (row[0] % (BRANCHES + 1) > 0) == branches]
    return sum(row[2] for row in rows) / sum(row[1] for row in rows)


def one_agent() -> Table:
    """What the first request of an agent finds, and what its branches do."""
    run = forked()
    rows = [("", "a prompt", "found")]
    for name, branches in (("first request", False), ("a branch", True)):
        tokens = run.workload.prompt_tokens[1 if branches else 0]
        rows.append((name, f"{tokens:,} tokens", f"{found(run, branches):.0%}"))
    return table(rows, f"{AGENTS} agents at {RATE:g}/s, one seed [{STEP.simulated}]")


@lru_cache(maxsize=4)
def one_question(salted: bool) -> Run:
    """The lab's system prompt before questions of SALTED tenants in turn; salted: nobody finds another's blocks."""
    load = Workload.poisson(8.0, 600, 104, 200, 0).with_system_prompt(SYSTEM, BLOCK_SIZE)
    if salted:
        each = SYSTEM // BLOCK_SIZE
        of = [tuple(range(each * (row % SALTED), each * (row % SALTED) + each)) for row in range(len(load))]
        load = replace(load, prefix=tuple(of))
    return serve(load, engine(), STEP, KVCache(pool(), BLOCK_SIZE, prefix_caching=True))
