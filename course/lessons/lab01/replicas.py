"""The ticket: three replicas with unequal loads, and a dashboard that averages their percentiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab01 import chat
from course.workload import Workload

RATES = (15.0, 6.0, 6.0)  # requests/s of replicas A, B and C
SECONDS, EVERY = 1_800, 60
PROMISE = 1.0  # second


@dataclass(frozen=True)
class Service:
    """Half an hour. runs: by replica. minutes: p99 of TTFT by replica and minute [s]; running: mean requests that run.

    Both have shape (replicas, minutes).
    """

    runs: tuple[Run, ...]
    minutes: np.ndarray
    running: np.ndarray

    @property
    def ttft(self) -> np.ndarray:
        """Of all requests [s]."""
        return np.concatenate([run.ttft for run in self.runs])

    @property
    def dashboard(self) -> float:
        """The mean of the three p99s, over the half hour [s]."""
        return float(np.mean([np.percentile(run.ttft, 99) for run in self.runs]))

    @property
    def late(self) -> float:
        """Share of all requests that waited longer than was promised."""
        return float((self.ttft > PROMISE).mean())


@lru_cache(maxsize=3)
def service(rates: tuple[float, ...] = RATES, slots: int = chat.SLOTS, seed: int = 0) -> Service:
    """Half an hour of three replicas at these rates, each with so many slots."""
    runs, minutes, running = [], [], []
    for replica, rate in enumerate(rates):
        drawn = chat.requests(rate, int(1.2 * rate * SECONDS), seed=seed + replica)
        kept = drawn.arrival < SECONDS
        load = Workload(drawn.arrival[kept], drawn.prompt_tokens[kept], drawn.output_tokens[kept])
        run = serve(load, policies.Continuous(slots, chat.BUDGET), chat.STEP)
        runs.append(run)
        edges = np.arange(0, SECONDS + EVERY, EVERY)
        minute = np.searchsorted(edges, run.arrival, side="right") - 1
        minutes.append([np.percentile(run.ttft[minute == m], 99) for m in range(len(edges) - 1)])
        middle = (np.searchsorted(edges, run.steps.end, side="right") - 1).clip(0, len(edges) - 1)
        weight = np.bincount(middle, run.steps.seconds, minlength=len(edges))[:-1]
        held = np.bincount(middle, run.steps.seconds * run.steps.running, minlength=len(edges))[:-1]
        running.append(held / np.maximum(weight, 1e-9))
    return Service(tuple(runs), np.array(minutes), np.array(running))
