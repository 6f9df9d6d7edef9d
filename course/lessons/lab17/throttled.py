"""The ticket of lab 17: a limit at the gateway that is far too low, what an operator sees, and what mends it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course.lessons.lab17 import tenants
from course.lessons.lab17.tenants import SECONDS, Outcome

NOW, REPAIR = 4, 28  # thousand tokens/s of each tenant
EVERY = 5  # seconds of a point of the graphs


@dataclass(frozen=True)
class Graphs:
    """One run and its graphs, a value for each EVERY seconds: shares of 1, tokens/s, requests."""

    found: Outcome
    busy: np.ndarray
    tokens: np.ndarray
    running: np.ndarray
    waiting: np.ndarray

    @property
    def at(self) -> np.ndarray:
        """The middle of each interval [s]."""
        return (np.arange(len(self.busy)) + 0.5) * EVERY


@lru_cache(maxsize=4)
def graphs(gateway: float) -> Graphs:
    """The storm behind this gateway. waiting: in the engine, so without those that the gateway holds back."""
    found = tenants.served(gateway=gateway)
    run, edges = found.run, np.arange(0, SECONDS + 1, EVERY)
    passed = passes(found)
    middle = np.digitize((run.steps.start + run.steps.end) / 2, edges) - 1
    points = range(len(edges) - 1)
    return Graphs(
        found=found,
        busy=np.minimum(1.0, [run.steps.seconds[middle == k].sum() / EVERY for k in points]),
        tokens=np.array([run.steps.useful[middle == k].sum() / EVERY for k in points]),
        running=np.array([found.running(at) for at in edges[1:]]),
        waiting=np.array([((passed <= at) & (run.admitted > at)).sum() for at in edges[1:]]),
    )


def passes(found: Outcome) -> np.ndarray:
    """When each request reaches the engine [s]."""
    known = getattr(found.run.policy, "passed", {})
    return np.array([known.get(row, at) for row, at in enumerate(found.run.arrival)])


def held(found: Outcome, at: float) -> int:
    """Requests that the gateway holds back at this time [s]."""
    return int(((found.run.arrival <= at) & (passes(found) > at)).sum())
