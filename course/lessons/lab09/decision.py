"""The decision of lab 09: a page in vLLM's form that the simulator wrote, two flags, and a promise."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from course.lessons.lab09 import pool
from course.lessons.lab09.pool import Served

MAX_NUM_SEQS, WATERMARK = "--max-num-seqs", "--watermark"
OFFERED = (
    (WATERMARK, 0.05), (WATERMARK, 0.3), (MAX_NUM_SEQS, 64), (MAX_NUM_SEQS, 72), (MAX_NUM_SEQS, 80), (MAX_NUM_SEQS, 88),
    (MAX_NUM_SEQS, 96),
)  # fmt: skip
PROMISE = 0.25  # seconds that an answer may stop
SEEDS = range(5)
MOMENT = 10.0  # seconds after the start, of the page


def start_up_log() -> str:
    """The two lines that vLLM prints of such a pool."""
    return (
        f"GPU KV cache size: {pool.TOKENS:,} tokens\n"
        f"Maximum concurrency for {pool.LONGEST:,} tokens per request: {pool.TOKENS / pool.LONGEST:.2f}x"
    )


def served(flag: str, value: float, seed: int = 0, count: int = pool.REQUESTS) -> Served:
    """A thousand questions with this flag, and the engine's own settings besides."""
    moved: dict[str, Any] = {"slots": int(value)} if flag == MAX_NUM_SEQS else {"watermark": value}
    return pool.out_of_blocks(**moved, seed=seed, count=count)


@cache
def worst(flag: str, value: float) -> tuple[float, float]:
    """(longest gap [s], least output [tokens/s]) over the draws."""
    runs = [served(flag, value, seed) for seed in SEEDS]
    return max(run.longest_gap for run in runs), min(run.tokens_per_second for run in runs)


@cache
def best() -> tuple[str, float]:
    """The flag and value on offer that keeps the promise in each draw, with the most output."""
    keep = [one for one in OFFERED if worst(*one)[0] <= PROMISE]
    return max(keep, key=lambda one: worst(*one)[1])


def page() -> str:
    """Lines of a metrics page of the run with the engine's own settings, in vLLM's form."""
    one = pool.out_of_blocks()
    run, steps = one.run, one.run.steps
    step = int(np.searchsorted(steps.end, MOMENT))
    values = {
        "num_requests_running": steps.running[step],
        "num_requests_waiting": steps.queue[step],
        "kv_cache_usage_perc": round(float(steps.blocks[step]) / one.cache.num_blocks, 3),
        "num_preemptions_total": steps.preemptions[: step + 1].sum(),
        "request_success_total": (run.response <= MOMENT).sum(),
    }
    return "\n".join(f"vllm:{name} {value:g}" for name, value in values.items())


def found_again(one: Served) -> int:
    """Tokens that preempted requests found in the prefix cache when they came back."""
    if one.run.log.lookups is None:
        return 0
    return int(one.run.log.lookups[:, 2].sum())  # no two questions begin alike: who finds something was there before
