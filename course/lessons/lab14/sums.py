"""What the exercises ask: a million tokens on several cards, a step of them, and which engine a request goes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course.engine.routes import RoundRobin
from course.explore.table import Rows
from course.lessons.lab14 import four
from course.models import prices

COST: dict[str, Any] = {"cards": 2, "price": 3.0, "batch": 48, "step_ms": 4.0}
COST_TWIN = COST | {"cards": 4, "batch": 96, "step_ms": 5.0}


def dollars(cards: int, price: float, batch: int, step_ms: float) -> float:
    """For a million tokens."""
    return prices.per_million(batch / (step_ms / 1e3), price, cards)


# A step under tensor parallelism: t one card's step, t0 what does not shrink, a an all-reduce [ms]

SHARED: dict[str, Any] = {"t": 40.0, "t0": 2.0, "cards": 4, "layers": 80, "a": 0.02}
SHARED_TWIN = SHARED | {"cards": 8, "a": 0.03}


def step(t: float, t0: float, cards: int, layers: int, a: float, sums: int = 2) -> float:
    """Milliseconds of a step. sums: all-reduces of a layer."""
    return t0 + (t - t0) / cards + (sums * layers * a if cards > 1 else 0.0)


# Which engine a request goes to: `waiting` and `running` have a count for each engine

ROUTE_PROBES = [([1, 0], [1, 4]), ([0, 5], [4, 2]),
                ([0, 0, 0], [5, 3, 4]), ([2, 0, 1], [1, 12, 3]), ([0, 1], [4, 0]), ([1, 0], [2, 6]), ([0, 0], [7, 7]),
                ([3, 1, 1, 2], [0, 9, 8, 4])]  # fmt: skip
WEIGHT = 4  # running sequences that one in the queue counts for, as in vLLM's router of replicas


def route(waiting: Sequence[int], running: Sequence[int]) -> int:
    """The engine with the least 4 x waiting + running; of equals the first."""
    loads = [WEIGHT * queue + active for queue, active in zip(waiting, running, strict=True)]
    return loads.index(min(loads))


def fewest(waiting: Sequence[int], running: Sequence[int]) -> int:
    """As if one in the queue counted like one that runs."""
    loads = [queue + active for queue, active in zip(waiting, running, strict=True)]
    return loads.index(min(loads))


def fewest_running(waiting: Sequence[int], running: Sequence[int]) -> int:
    """Without the queue."""
    return list(running).index(min(running))


def shortest_queue(waiting: Sequence[int], running: Sequence[int]) -> int:
    """By the queue alone."""
    return list(waiting).index(min(waiting))


def fullest(waiting: Sequence[int], running: Sequence[int]) -> int:
    """The most loaded one."""
    loads = [WEIGHT * queue + active for queue, active in zip(waiting, running, strict=True)]
    return loads.index(max(loads))


def least_load(waiting: Sequence[int], running: Sequence[int]) -> int:
    """The load itself, not whose it is."""
    return min(WEIGHT * queue + active for queue, active in zip(waiting, running, strict=True))


def last_of_equals(waiting: Sequence[int], running: Sequence[int]) -> int:
    """Of equals the last."""
    loads = [WEIGHT * queue + active for queue, active in zip(waiting, running, strict=True)]
    return len(loads) - 1 - loads[::-1].index(min(loads))


Route = Callable[[Sequence[int], Sequence[int]], int]


class ByCounts:
    """A route of a Fleet from a function of two counts for each replica."""

    def __init__(self, function: Route) -> None:
        self.function = function

    def __call__(self, request: Any, replicas: Sequence[Any]) -> int:
        """The number of the replica."""
        open_requests = [replica.requests for replica in replicas]
        running = [sum(one.computed > 0 for one in here) for here in open_requests]
        waiting = [len(here) - active for here, active in zip(open_requests, running, strict=True)]
        return self.function(waiting, running)


ROUTE_RATE = 100


def at_work(function: Route) -> Rows:
    """Four replicas with this route, and one after the other."""
    runs = {"one after the other": four.served(four.REPLICAS, ROUTE_RATE, route=RoundRobin()),
            "your route": four.served(four.REPLICAS, ROUTE_RATE, route=ByCounts(function))}  # fmt: skip
    return (
        ("", *runs),
        ("p95 of TPOT", *(f"{1e3 * np.nanpercentile(run.tpot, 95):.1f} ms" for run in runs.values())),
        ("p95 of TTFT", *(f"{1e3 * np.percentile(run.ttft, 95):.0f} ms" for run in runs.values())),
    )
