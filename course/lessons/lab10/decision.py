"""The decision of lab 10: conversations that take turns on the recorded vLLM, its own log, and one flag to choose."""

from __future__ import annotations

from functools import cache

import numpy as np

from course.calibration import vllm_live
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab10.live_words import BLOCK_SIZE, BLOCKS, BUDGET, LIVE, SLOTS, found_by_vllm
from course.memory.kvcache import KVCache
from course.policies import Continuous
from course.steptime import recorded
from course.workload import Workload

QUERIES, HITS = int(LIVE.prompt_tokens.sum()), found_by_vllm("on")
CHATS = 40  # conversations of tomorrow, which take turns
HISTORY = 256  # tokens that all questions about one conversation begin with
PROMPT, ANSWER = 276, 27  # tokens: what the recorded ones have in the median, and on average
HISTORY_BLOCKS = HISTORY // BLOCK_SIZE
AT_ITS_END = -(-(PROMPT + ANSWER) // BLOCK_SIZE)  # blocks of a request
NEEDED = CHATS * AT_ITS_END + 1  # vLLM keeps one for itself
RATE = 6.0  # questions/s
MOMENTS = ("15:02:32", "15:02:41")


@cache
def log() -> str:
    """Two lines of its log, shortened to what counts here: after the recorded load, and nine seconds later."""
    lines = (vllm_live.FOLDER / f"serve_{LIVE.engine['server']}.log").read_text(encoding="utf-8").splitlines()
    found = [line for moment in MOMENTS for line in lines if moment in line and "hit rate" in line]
    return "\n".join(
        f"{moment} ... {line[line.index('CPU KV') :]}" for moment, line in zip(MOMENTS, found, strict=True)
    )


def rates_logged() -> list[float]:
    """The hit rates of those lines, as shares."""
    return [float(line.rsplit(" ", 1)[1].rstrip("%")) / 100 for line in log().splitlines()]


def served(
    num_blocks: int, times: float = 1.0, seed: int = 0, order: np.ndarray | None = None, count: int = 400
) -> Run:
    """Questions about CHATS conversations, one after the other by default, in a pool that vLLM would log so.

    Simulated on steps of an H100, whose seconds decide nothing.
    """
    which = np.arange(count) % CHATS if order is None else order
    at = Workload.poisson(times * RATE, len(which), PROMPT, ANSWER, seed)
    ids = tuple(tuple(1_000 * int(chat) + place for place in range(HISTORY_BLOCKS)) for chat in which)
    load = Workload(at.arrival, at.prompt_tokens, at.output_tokens, prefix=ids, prefix_block_size=BLOCK_SIZE)
    cache = KVCache(num_blocks - 1, BLOCK_SIZE, LIVE.engine["version"], prefix_caching=True)
    return serve(load, Continuous(SLOTS, BUDGET), recorded("h100-llama3-8b"), cache)


def hit_rate(run: Run) -> float:
    """Of the first admissions."""
    return run.summary()["prefix_hit_rate_first"]


__all__ = ["ANSWER", "AT_ITS_END", "BLOCKS", "CHATS", "HISTORY_BLOCKS", "HITS", "NEEDED", "QUERIES"]
