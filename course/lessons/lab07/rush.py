"""The ticket of lab 07: questions about documents with two token budgets, what an operator sees minute by minute."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab07.long_prompt import STEP, engine
from course.workload import Workload

RATE, PROMPT, ANSWER = 16, 1_000, 300  # requests/s, tokens
SECONDS = 150
BEFORE, NOW, REPAIR = 2_048, 128, 1_024  # token budgets
EVERY = 10  # seconds of a point of the graphs


@dataclass(frozen=True)
class Graphs:
    """One run and its graphs, a value for each EVERY seconds. TTFT and gaps in seconds, the others in requests."""

    run: Run
    ttft: np.ndarray
    gap: np.ndarray
    running: np.ndarray
    waiting: np.ndarray

    @property
    def at(self) -> np.ndarray:
        """The middle of each interval [s]."""
        return (np.arange(len(self.ttft)) + 0.5) * EVERY


@lru_cache(maxsize=4)
def graphs(budget: int) -> Graphs:
    """The same traffic under a token budget. TTFT: p95 of those who arrive; gap: p99 over tokens; others at the end."""
    load = Workload.poisson(rate=RATE, num_requests=RATE * SECONDS, prompt_tokens=PROMPT, output_tokens=ANSWER)
    run = serve(load, engine(budget), STEP)
    edges = np.arange(0, SECONDS + 1, EVERY)
    group = np.digitize(run.arrival, edges) - 1
    gaps, weights = np.diff(run.steps.end), run.steps.decodes[1:]
    when = np.digitize(run.steps.end[1:], edges) - 1
    points = range(len(edges) - 1)
    return Graphs(
        run=run,
        ttft=np.array([np.percentile(run.ttft[group == k], 95) for k in points]),
        gap=np.array([np.percentile(np.repeat(gaps[when == k], weights[when == k]), 99) for k in points]),
        running=np.array([((run.admitted <= t) & (run.response > t)).sum() for t in edges[1:]]),
        waiting=np.array([((run.arrival <= t) & (run.admitted > t)).sum() for t in edges[1:]]),
    )
