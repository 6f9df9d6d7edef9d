"""What the decision is about: lines that an engine writes while it always has somebody waiting, prompts and all.

More requests come than it can take, so all slots are taken; a prompt shares its step with the decodes of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab02.one_step import STEP
from course.workload import Workload, lengths

RUNNING = (32, 64, 128, 256)
PROMISE, PROMISE_TWIN = 12.5e-3, 8e-3  # seconds of TPOT
PROMPT, ANSWER, CV = 512, 256, 1.0  # tokens of a request on average; of its answer lognormal
RATE, REQUESTS, BUDGET = 44, 4_000, 2_048  # requests/s, more than any of them can take; tokens a step
INTERVAL = (50.0, 60.0)  # seconds of the run that a line is about
POOL = 420_000
"""Tokens for which the engine has room: of 80 GB, what the weights and a tenth for other uses leave is 461,000."""


@lru_cache(maxsize=32)
def served(running: int, times: float = 1.0, seed: int = 0) -> Run:
    """The service with so many slots. times: of the rate."""
    load = Workload.poisson(times * RATE, REQUESTS, PROMPT, lengths.lognormal(ANSWER, CV), seed)
    return serve(load, policies.Continuous(running, BUDGET), STEP)


def mean_tpot(running: int, times: float = 1.0, seed: int = 0) -> float:
    """Mean TPOT [s] of those who were let in while somebody waited."""
    run = served(running, times, seed)
    return float(np.nanmean(run.tpot[run.response <= run.arrival[-1]]))


@dataclass(frozen=True)
class Line:
    """What stands in a line: tokens/s of prompts and answers over the interval, and requests and usage at its end."""

    prompts: float
    answers: float
    running: int
    waiting: int
    usage: float

    def __str__(self) -> str:
        return (
            f"Avg prompt throughput: {self.prompts:.1f} tokens/s, "
            f"Avg generation throughput: {self.answers:.1f} tokens/s, "
            f"Running: {self.running} reqs, Waiting: {self.waiting} reqs, GPU KV cache usage: {self.usage:.1%}"
        )


@lru_cache(maxsize=8)
def line(running: int) -> Line:
    """The line of so many slots."""
    run, (begin, end) = served(running), INTERVAL
    steps, seconds = run.steps, end - begin
    here = (steps.end > begin) & (steps.end <= end)
    first = (run.first_computed > begin) & (run.first_computed <= end)
    inside = (run.admitted <= end) & (run.response > end)
    done = (end - run.first_computed[inside]) / (run.response - run.first_computed)[inside]
    tokens = run.workload.prompt_tokens[inside] + np.clip(done, 0, 1) * run.workload.output_tokens[inside]
    return Line(
        float(steps.prefill_tokens[here].sum()) / seconds,
        float(steps.decodes[here].sum() + first.sum()) / seconds,
        int(inside.sum()),
        int(((run.arrival <= end) & (run.admitted > end)).sum()),
        float(tokens.sum()) / POOL,
    )


def step(running: int) -> float:
    """TPOT [s] as a line says it: Running over the tokens/s of answers."""
    found = line(running)
    return found.running / found.answers


def largest(promise: float) -> int:
    """The most that may run with a TPOT of at most `promise` seconds: the cheapest of the four that keeps it."""
    return max(running for running in RUNNING if step(running) <= promise)
