"""The second scenario of lab 09, deeper: from which bandwidth on copying to the host wins, and a watermark by draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab09 import pool
from course.lessons.lab09.pool import BLOCK, BUDGET, HOST_BLOCKS, SLOTS, SPEC, STEP, VERSION
from course.memory.kvcache import KVCache
from course.workload import Workload

SEEDS = range(5)
MARKS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
HOST = 1e-3  # seconds that a block takes in one of two runs: makespan is a straight line over it


@dataclass(frozen=True)
class Kind:
    """Requests that come at once. prompt: tokens, 0 as in the lab. answer: tokens on average. tokens: of the pool."""

    prompt: int
    answer: int
    many: int
    tokens: int


KINDS = {
    "the lab's questions": Kind(0, 0, pool.REQUESTS, pool.TOKENS),
    "prompts of 1,500": Kind(1_500, 300, 400, 40_000),
    "prompts of 6,000": Kind(6_000, 600, 200, 120_000),
}


@cache
def asked(name: str, seed: int = 0) -> Workload:
    """The requests of a kind."""
    kind = KINDS[name]
    if not kind.prompt:
        return pool.requests(seed)
    rng = np.random.default_rng(seed)
    answer = np.clip(rng.lognormal(np.log(kind.answer) - 0.5, 1.0, kind.many), 1, 1_024).astype(int)
    return Workload(np.zeros(kind.many), np.full(kind.many, kind.prompt), answer)


@cache
def served(name: str, each: float | None, seed: int = 0) -> Run:
    """A kind of requests; each: seconds to copy a block one way, None: computed again."""
    host: dict[str, Any] = {} if each is None else {"host_blocks": HOST_BLOCKS, "host_seconds": each}
    cache_ = KVCache(KINDS[name].tokens // BLOCK, BLOCK, VERSION, **host)
    return serve(asked(name, seed), policies.Continuous(SLOTS, BUDGET, engine_version=VERSION), STEP, cache_)


def crossover(name: str, seed: int = 0) -> float:
    """The bandwidth [bytes/s] at which copying takes as long as computing again.

    All requests are there from the start, so how long a copy takes changes no decision: the whole run takes
    free + blocks x seconds of a block.
    """
    free, slow, again = (served(name, each, seed).makespan for each in (0.0, HOST, None))
    blocks = (slow - free) / HOST
    return blocks * BLOCK * SPEC.kv_bytes_per_token / (again - free)


def crossovers() -> Table:
    """By kind of request: preemptions, what computing again costs, and the bandwidth."""
    rows: list[tuple[str, ...]] = [("", "preemptions", "computing again costs", "copying wins from", "five draws")]
    for name in KINDS:
        again, free = served(name, None), served(name, 0.0)
        draws = [crossover(name, seed) / 1e9 for seed in SEEDS]
        cost = again.makespan / free.makespan - 1
        spread = f"{min(draws):.0f} to {max(draws):.0f} GB/s"
        rows.append((name, f"{again.preempted.sum():,}", f"{cost:.0%}", f"{draws[0]:.1f} GB/s", spread))
    return table(rows, f"Copied out and back, or computed again [{STEP.simulated}]")


@cache
def marked(share: float) -> tuple[list[float], list[int], list[float]]:
    """(tokens/s, preemptions, longest gap [s]) of each draw with a watermark."""
    runs = [pool.out_of_blocks(watermark=share, seed=seed) for seed in SEEDS]
    return ([r.tokens_per_second for r in runs], [r.preemptions for r in runs], [r.longest_gap for r in runs])


def watermarks() -> Table:
    """A watermark over five draws: from the least to the most."""
    rows: list[tuple[str, ...]] = [("watermark", "output", "preemptions", "longest gap")]
    for share in MARKS:
        speed, lost, gap = marked(share)
        rows.append(
            (f"{share:g}", f"{min(speed):,.0f} to {max(speed):,.0f} tokens/s", f"{min(lost):,} to {max(lost):,}",
             f"{seconds(min(gap))} to {seconds(max(gap))}")
        )  # fmt: skip
    return table(rows, f"Five draws of a thousand questions [{STEP.simulated}]")


def best_mark(seed: int) -> float:
    """The watermark with the most tokens/s in a draw."""
    return max(MARKS, key=lambda share: marked(share)[0][seed])
