"""The second scenario of lab 10: chats that come back, and a pool in which their history may still be.

Every chat has a system prompt of 2,000 tokens and five turns: 1,200 new tokens, an answer of 400, and a pause. The next
prompt is all that was said before, and the new text. An agent's pause is as long each time; people's pauses vary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.lessons.lab10.one_prompt import BLOCK_SIZE, STEP, SYSTEM, engine, pool
from course.memory.kvcache import KVCache
from course.workload import Workload

RATE = 0.5  # chats/s
CHATS, TURNS = 150, 5
NEW, ANSWER = 1_200, 400  # tokens of a turn
PAUSE = 60.0  # seconds between an answer and the next prompt, on average
AGENTS, PEOPLE = 0.0, 1.0
"""CV of the pauses: a tool that takes as long each time, and somebody who reads."""
A_TURN = (NEW + ANSWER) // BLOCK_SIZE  # blocks
SHARED = SYSTEM // BLOCK_SIZE


def blocks_needed(rate: float, pause: float, turns: int, a_turn: int, shared: int) -> float:
    """Blocks in which each chat still finds its history when it comes back, if all pauses are as long.

    Within one pause, rate x pause chats end a turn of each number, and leave that much history: by Little's law. Those
    who have ended their last turn are among them, since a cache cannot know that they will not come back.
    """
    return rate * pause * a_turn * sum(range(1, turns + 1)) + shared


def blocks_of_who_returns(rate: float, pause: float, turns: int, a_turn: int, shared: int) -> float:
    """The same for those alone who will come back."""
    return rate * pause * a_turn * sum(range(1, turns)) + shared


@lru_cache(maxsize=8)
def talks(pause: float = PAUSE, pause_cv: float = AGENTS, rate: float = RATE, seed: int = 0) -> Workload:
    """The chats."""
    return Workload.turns(rate, CHATS, TURNS, NEW, ANSWER, pause, pause_cv, SYSTEM, seed, BLOCK_SIZE)


@dataclass(frozen=True)
class Chats:
    """One run. found, asked: prompt tokens of each turn that were found, and all, over all chats: shape (TURNS,)."""

    run: Run
    num_blocks: int
    found: np.ndarray
    asked: np.ndarray

    @cached_property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that were found when the requests got their slots first."""
        return self.run.summary()["prefix_hit_rate_first"]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the run that are about its memory."""
        return ()


@lru_cache(maxsize=32)  # 4 MB each
def returned(
    num_blocks: int = 14_000, pause: float = PAUSE, pause_cv: float = AGENTS, rate: float = RATE, seed: int = 0
) -> Chats:
    """Serve the chats in a pool of so many blocks."""
    load = talks(pause, pause_cv, rate, seed)
    run = serve(load, engine(), STEP, KVCache(num_blocks, BLOCK_SIZE, prefix_caching=True))
    row, known, found = np.asarray(run.log.lookups).T
    first = np.unique(row, return_index=True)[1]
    turn = row[first] % TURNS
    sums = (np.bincount(turn, weights=values[first], minlength=TURNS) for values in (found, known))
    return Chats(run, num_blocks, *sums)


def most() -> float:
    """The hit rate in a pool that is never short."""
    return returned(pool()).hit_rate


def enough() -> int:
    """The smallest pool of the slider in which nothing that could be found is missed, but for 0.3 points."""
    return next(n for n in range(40_000, 54_001, 2_000) if most() - returned(n).hit_rate < 0.003)


@lru_cache(maxsize=4)
def without_answers() -> float:
    """The hit rate in such a pool where prompts alone can be found."""
    load = talks()
    prompts = [ids[: tokens // BLOCK_SIZE] for ids, tokens in zip(load.prefix or (), load.prompt_tokens, strict=True)]
    load = replace(load, prefix=tuple(prompts), prefix_answers=False)
    run = serve(load, engine(), STEP, KVCache(pool(), BLOCK_SIZE, prefix_caching=True))
    return run.summary()["prefix_hit_rate_first"]


def rows(result: Chats) -> list[tuple[str, ...]]:
    """Rows of the table."""
    run = result.run
    return [
        ("hit rate", f"{result.hit_rate:.1%}"),
        ("prompt tokens computed", f"{int((result.asked - result.found).sum()):,}"),
        ("mean TTFT", seconds(float(run.ttft.mean()))),
        ("p99 of TTFT", seconds(float(np.percentile(run.ttft, 99)))),
    ]
