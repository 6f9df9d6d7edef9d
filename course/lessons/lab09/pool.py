"""The scenario of lab 09: a thousand questions at once, and a pool of 40,000 tokens.

Prompts of about 150 tokens and answers of about 300, both lognormal with a CV near 1: the means of ShareGPT in
PagedAttention's paper (Kwon et al., SOSP 2023) were 161 and 338. Steps are those recorded on an H200 with
Llama-3.1-8B. The pool is a tenth of what that card has, so that it binds; slots and token budget are the engine's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.memory.kvcache import KVCache
from course.memory.swap_pool import copy_seconds
from course.models import model
from course.steptime import recorded
from course.workload import Workload

STEP = recorded("h200-llama3-8b-flash")
SPEC = model("llama-3.1-8b")
TOKENS, BLOCK = 40_000, 16
SLOTS, BUDGET, VERSION = 1_024, 8_192, "0.33"  # what that release takes on an H200
LONGEST, LONGEST_PROMPT = 2_048, 1_024  # max_model_len, and what a prompt has of it at most
REQUESTS = 1_000
HOST_BLOCKS = 10_000  # 160,000 tokens, 21 GB: never full here

MAX, POW2, TRUE, PAGED = "2,048 tokens for each", "next power of two", "its true length", "blocks, as it grows"
RESERVES = {MAX: "longest", POW2: "power of two", TRUE: "length"}
LAST, FEWEST = "last admitted", "fewest computed tokens"
VICTIMS = {LAST: policies.Continuous, FEWEST: policies.FewestComputed}
AGAIN, FREE = 0.0, float("inf")
"""In place of a bandwidth: computed again, and copied in no time."""


@lru_cache(maxsize=16)
def requests(seed: int = 0, count: int = REQUESTS) -> Workload:
    """The questions, all at 0 s; the guess of each answer is its true length, which no engine knows."""
    rng = np.random.default_rng(seed)
    prompt = np.clip(rng.lognormal(np.log(161) - 0.5, 1.0, count), 4, LONGEST_PROMPT).astype(int)
    answer = np.clip(rng.lognormal(np.log(338) - 0.5, 1.0, count), 1, LONGEST - LONGEST_PROMPT).astype(int)
    return Workload(np.zeros(count), prompt, answer, guess=answer.astype(float))


@dataclass(frozen=True)
class Served:
    """One run, and what is read of it. Means are over the time in which somebody waits."""

    run: Run
    cache: KVCache

    @cached_property
    def tokens_per_second(self) -> float:
        """Output tokens over the whole run."""
        return float(self.run.workload.output_tokens.sum()) / self.run.makespan

    @cached_property
    def held(self) -> np.ndarray:
        """Tokens in the cache at the end of each step."""
        return self.run.steps.decode_context + self.run.steps.prefill_tokens

    @cached_property
    def taken(self) -> np.ndarray:
        """Tokens that there is room for in what is reserved or taken, in each step."""
        return self.run.steps.blocks * self.cache.block_size

    def mean(self, column: np.ndarray) -> float:
        """Of a column of steps, over time, while somebody waits."""
        weights = self.run.steps.seconds * (self.run.steps.queue > 0)
        return float(column @ weights / weights.sum())

    @cached_property
    def running(self) -> float:
        """Requests at a time."""
        return self.mean(self.run.steps.running)

    @cached_property
    def used(self) -> float:
        """Share of the pool that holds tokens."""
        return self.mean(self.held) / TOKENS

    @cached_property
    def empty(self) -> float:
        """Share of what is reserved or taken that holds nothing."""
        return 1 - self.mean(self.held) / self.mean(self.taken)

    @cached_property
    def preemptions(self) -> int:
        """How often a request lost its blocks."""
        return int(self.run.preempted.sum())

    @cached_property
    def most(self) -> int:
        """How often the same request did, at most."""
        return int(self.run.preempted.max())

    @cached_property
    def again(self) -> float:
        """Tokens computed again, as a share of those needed."""
        load = self.run.workload
        return float(self.run.steps.dropped.sum()) / float((load.prompt_tokens + load.output_tokens - 1).sum())

    @cached_property
    def longest_gap(self) -> float:
        """The longest time between two tokens of one answer [s]."""
        return float(self.run.itl_weighted[0].max())

    @property
    def warnings(self) -> tuple[str, ...]:
        """None: what the run would warn of is what the lab is about."""
        return ()


@lru_cache(maxsize=128)
def placed(
    how: str, block_size: int = BLOCK, seed: int = 0, compaction: float | None = None, fit: str = "best"
) -> Served:
    """Everybody served with this way to hand memory out. compaction: seconds a token, and fit: of pieces alone."""
    if how == PAGED:
        cache = KVCache(TOKENS // block_size, block_size, VERSION)
    else:
        whole: dict[str, Any] = {
            "reserve": RESERVES[how],
            "max_model_len": LONGEST,
            "compaction": compaction,
            "fit": fit,
        }
        cache = KVCache(TOKENS, 1, VERSION, **whole)
    policy = policies.Continuous(SLOTS, BUDGET, engine_version=VERSION)
    return Served(serve(requests(seed), policy, STEP, cache), cache)


@lru_cache(maxsize=512)
def out_of_blocks(
    slots: int = SLOTS,
    watermark: float = 0.0,
    victim: str = LAST,
    bandwidth: float = AGAIN,
    seed: int = 0,
    count: int = REQUESTS,
    prefix_caching: bool = False,
) -> Served:
    """Everybody served in blocks of 16, of which there are too few. bandwidth: GB/s of copies to the host and back."""
    host: dict[str, Any] = {}
    if bandwidth:
        each = 0.0 if bandwidth == FREE else copy_seconds(BLOCK * SPEC.kv_bytes_per_token, 1e9 * bandwidth)
        host = {"host_blocks": HOST_BLOCKS, "host_seconds": each}
    cache = KVCache(TOKENS // BLOCK, BLOCK, VERSION, prefix_caching=prefix_caching, **host)
    policy = VICTIMS[victim](slots, max(BUDGET, slots), engine_version=VERSION, watermark=watermark)
    return Served(serve(requests(seed, count), policy, STEP, cache), cache)


def placed_rows(result: Served) -> list[tuple[str, str]]:
    """Rows for a table: what is reserved, what it holds, what that does."""
    return [
        ("reserved or taken", f"{result.mean(result.taken):,.0f} tokens"),
        ("of that, holding tokens", f"{result.mean(result.held):,.0f} tokens"),
        ("running, mean", f"{result.running:.0f}"),
        ("output", f"{result.tokens_per_second:,.0f} tokens/s"),
        ("preemptions", f"{result.preemptions:,}"),
    ]


def out_rows(result: Served) -> list[tuple[str, str]]:
    """Rows for a table: what preemption costs."""
    return [
        ("output", f"{result.tokens_per_second:,.0f} tokens/s"),
        ("running, mean", f"{result.running:.0f}"),
        ("preemptions", f"{result.preemptions:,}"),
        ("of one request, at most", f"{result.most}"),
        ("computed again", f"{result.again:.0%}"),
        ("longest gap in an answer", seconds(result.longest_gap)),
    ]
