"""The ticket of lab 06: chats, and agents that ask many short questions at once; what an operator sees, twice."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab06.two_orders import BUDGET, FIRST, MIXED, SLOTS, STEP, policy
from course.workload import Workload, lengths

CHAT_RATE, CHAT_PROMPT, CHAT_ANSWER = 10, 200, 300  # requests/s, tokens
AT_ONCE, EVERY, PROMPT, ANSWER = 50, 20.0, 1_200, 60  # questions of the agents, seconds between, tokens
SECONDS = 160
POINT = 10  # seconds of a point of the graphs
ENOUGH = 0.25  # seconds: a gap that the repair keeps


@lru_cache(maxsize=16)
def requests(faster: float = 1.0, seed: int = 0) -> Workload:
    """Poisson chats, and the agents' questions all at once every EVERY seconds."""
    chats = Workload.poisson(CHAT_RATE, CHAT_RATE * SECONDS, CHAT_PROMPT, lengths.lognormal(CHAT_ANSWER, cv=0.5), seed)
    times = np.repeat(np.arange(EVERY / 2, SECONDS, EVERY), AT_ONCE)
    agents = Workload(times, np.full(len(times), PROMPT), np.full(len(times), ANSWER))
    load = Workload.mix({"chat": chats, "agent": agents})
    return load if faster == 1 else load.scaled(load.rate * faster)


@lru_cache(maxsize=64)
def run(rule: str, budget: int = BUDGET, slots: int = SLOTS, faster: float = 1.0, seed: int = 0) -> Run:
    """The traffic under an order, with a budget and slots."""
    return serve(requests(faster, seed), policy(rule, budget, slots), STEP)


@dataclass(frozen=True)
class Graphs:
    """One run, a value for each POINT seconds: mean TTFT and the gaps in seconds, running in requests."""

    run: Run
    ttft: np.ndarray
    itl_p99: np.ndarray
    longest: np.ndarray
    running: np.ndarray

    @property
    def at(self) -> np.ndarray:
        """The middle of each interval [s]."""
        return (np.arange(len(self.ttft)) + 0.5) * POINT


@lru_cache(maxsize=2)
def graphs(rule: str) -> Graphs:
    """Of those who arrive, or get a token, in each interval."""
    found = run(rule)
    edges = np.arange(0, SECONDS + 1, POINT)
    points = range(len(edges) - 1)
    came = np.digitize(found.arrival, edges) - 1
    times = [found.token_times(row) for row in range(len(found))]
    when = np.digitize(np.concatenate([each[1:] for each in times]), edges) - 1
    gaps = np.concatenate([np.diff(each) for each in times])
    return Graphs(
        run=found,
        ttft=np.array([found.ttft[came == k].mean() for k in points]),
        itl_p99=np.array([np.percentile(gaps[when == k], 99) for k in points]),
        longest=np.array([gaps[when == k].max() for k in points]),
        running=np.array([((found.admitted <= t) & (found.response > t)).sum() for t in edges[1:]]),
    )


BEFORE, NOW = MIXED, FIRST
