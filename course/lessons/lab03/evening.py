"""The evening of the ticket: a campaign sends more than the engine sustains, and is over when the ticket is written."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab03 import one_engine
from course.workload import Workload

MINUTE = 60  # seconds
USUAL, CAMPAIGN = 12, 20  # requests/s
BEGIN, END, MINUTES = 10, 30, 55  # minutes after 18:00: the campaign, and the end of the run
SHOWN = (32, 42)  # minutes after 18:00 on the graphs


@dataclass(frozen=True)
class Evening:
    """One run and its graphs, a value for each minute: requests/s, output tokens/s, seconds, requests."""

    run: Run
    arrived: np.ndarray
    finished: np.ndarray
    tokens: np.ndarray
    ttft: np.ndarray
    waiting: np.ndarray


def load(seed: int = 0, times: float = 1.0) -> Workload:
    """The scenario's requests, a Poisson process in each minute. times: of the rates."""
    rng = np.random.default_rng(seed)
    rates = times * np.full(MINUTES, USUAL)
    rates[BEGIN:END] = times * CAMPAIGN
    counts = rng.poisson(rates * MINUTE)
    arrival = np.concatenate([np.sort(rng.uniform(m * MINUTE, (m + 1) * MINUTE, n)) for m, n in enumerate(counts)])
    drawn = one_engine.requests(1, num_requests=len(arrival), seed=seed)
    return Workload(arrival, drawn.prompt_tokens, drawn.output_tokens)


@lru_cache(maxsize=8)
def served(max_num_seqs: int = one_engine.SLOTS, seed: int = 0, times: float = 1.0) -> Run:
    """The whole evening with so many slots."""
    return serve(load(seed, times), one_engine.engine(max_num_seqs), one_engine.STEP)


@lru_cache(maxsize=1)
def evening() -> Evening:
    """Its graphs. `ttft` is the median of those who got their first token in the minute; `waiting` is at its start."""
    run = served()
    started = run.arrival + run.queue_wait
    first, last = run.arrival + run.ttft, run.response
    minutes = np.arange(MINUTES)
    starts = minutes * MINUTE
    done, begun = last // MINUTE, first // MINUTE
    return Evening(
        run=run,
        arrived=np.array([(run.arrival // MINUTE == m).mean() for m in minutes]) * len(run) / MINUTE,
        finished=np.array([(done == m).mean() for m in minutes]) * len(run) / MINUTE,
        tokens=np.array([run.workload.output_tokens[done == m].sum() / MINUTE for m in minutes]),
        ttft=np.array([np.median(run.ttft[begun == m]) for m in minutes]),
        waiting=np.array([((run.arrival <= t) & (started > t)).sum() for t in starts]),
    )
