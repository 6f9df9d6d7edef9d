"""The first scenario of lab 10: one system prompt of 2,000 tokens before every question, on an H200.

The engine has the slots and the budget that vLLM takes on such a card, and the KV pool of its ledger. Steps are those
recorded on an H200 with Llama-3.1-8B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from course import memory, policies
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.memory.kvcache import KVCache
from course.models import engine_defaults, model
from course.steptime import recorded
from course.workload import Workload

STEP = recorded("h200-llama3-8b-flash")
SPEC = model("llama-3.1-8b")
MEMORY_GIB = 139.8  # of an H200, as PyTorch counts it
SLOTS, BUDGET = engine_defaults.LARGE
BLOCK_SIZE = engine_defaults.BLOCK_SIZE
SYSTEM, OWN = 2_000, 104  # tokens of a prompt that all have in common, and of the question behind them
MANY = 600  # requests
AT_ONCE = 0.0  # as a rate: all are there from the beginning


@lru_cache(maxsize=8)
def pool(gpu_memory_utilization: float = engine_defaults.GPU_MEMORY_UTILIZATION) -> int:
    """Blocks for requests on the H200, by its ledger, but for the one that vLLM keeps for itself."""
    found = memory.ledger(
        SPEC,
        memory_bytes=MEMORY_GIB * 2**30,
        max_model_len=8_192,
        gpu_memory_utilization=gpu_memory_utilization,
        max_num_batched_tokens=BUDGET,
        max_num_seqs=SLOTS,
    )
    return (found.kv_tokens or 0) // BLOCK_SIZE - 1


def engine() -> policies.Continuous:
    """Continuous batching with the engine's own slots and budget."""
    return policies.Continuous(SLOTS, BUDGET)


@lru_cache(maxsize=64)
def asked(answer: int, rate: float, seed: int = 0) -> Workload:
    """Questions behind the system prompt; without `prefix`, which the cache's block size decides."""
    if rate == AT_ONCE:
        return Workload.fixed(num_requests=MANY, prompt_tokens=OWN, output_tokens=answer, interval=0)
    return Workload.poisson(rate, MANY, OWN, answer, seed)


@lru_cache(maxsize=256)
def served(answer: int, rate: float, block_size: int, caching: bool, seed: int = 0) -> Run:
    """One run, in as many tokens of pool whatever the block size."""
    load = asked(answer, rate, seed).with_system_prompt(SYSTEM, block_size)
    cache = KVCache(pool() * BLOCK_SIZE // block_size, block_size, prefix_caching=caching)
    return serve(load, engine(), STEP, cache)


@dataclass(frozen=True)
class Both:
    """The same requests with prefix caching and without."""

    answer: int
    block_size: int
    on: Run
    off: Run

    @cached_property
    def gain(self) -> float:
        """How many times the tokens/s of an engine without."""
        return self.off.makespan / self.on.makespan

    @cached_property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that were found."""
        return self.on.summary()["prefix_hit_rate_first"]

    @cached_property
    def found(self) -> int:
        """Tokens that the last prompt found."""
        return int(np.asarray(self.on.log.lookups)[-1, 2])

    def blocks(self, run: Run) -> int:
        """The most blocks that were held at once, in blocks of the engine's own size."""
        return int(run.steps.blocks.max()) * self.block_size // BLOCK_SIZE

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know of the recording."""
        return ()


@lru_cache(maxsize=256)
def both(answer: int = 200, rate: float = AT_ONCE, block_size: int = BLOCK_SIZE, seed: int = 0) -> Both:
    """Serve the requests twice."""
    on, off = (served(answer, rate, block_size, caching, seed) for caching in (True, False))
    return Both(answer, block_size, on, off)


def prompts_alone(answer: int) -> float:
    """Share of an engine's time without caching that goes to prompts, all at once: what prompts alone would take."""
    return served(1, AT_ONCE, BLOCK_SIZE, False).makespan / served(answer, AT_ONCE, BLOCK_SIZE, False).makespan


def by_amdahl(hit_rate: float, share: float) -> float:
    """Amdahl's law: times the throughput, if a share of the time went to prompts and so much of them is found."""
    return 1 / (1 - hit_rate * share)


def rows(result: Both) -> list[tuple[str, ...]]:
    """Rows of the table: with, without, and how they compare."""

    def speed(run: Run) -> float:
        return float(run.workload.output_tokens.sum()) / run.makespan

    off, on = result.off, result.on
    ttft = [float(np.mean(run.ttft)) for run in (off, on)]
    return [
        ("", "with caching", "without"),
        ("prompt tokens found", f"{result.hit_rate:.1%}", "-"),
        ("found by the last prompt", f"{result.found:,} of {SYSTEM + OWN:,}", "-"),
        ("output", f"{speed(on):,.0f}/s", f"{speed(off):,.0f}/s"),
        ("gain", f"{result.gain:.2f} times", "1"),
        ("mean TTFT", seconds(ttft[1]), seconds(ttft[0])),
        ("blocks held, most", f"{result.blocks(on):,}", f"{result.blocks(off):,}"),
    ]
