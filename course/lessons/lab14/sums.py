"""What the exercises ask: a million tokens on several cards, a step of them, and which engine a request goes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course.engine.routes import RoundRobin
from course.explore.table import Rows
from course.lessons.lab14 import four
from course.models import prices

SHARED: dict[str, Any] = {
    "t": 40.0, "t0": 2.0, "cards": 4, "layers": 80, "a": 0.02, "batch": 48, "price": 3.0,
}  # fmt: skip
"""The example: a 70B on four cards."""
PROBES = [
    list(SHARED.values()), [40.0, 2.0, 8, 80, 0.03, 64, 3.0], [8.0, 1.0, 2, 32, 0.01, 16, 3.5],
    [8.0, 1.0, 1, 32, 0.01, 16, 3.5],
]  # fmt: skip


def step(t: float, t0: float, cards: int, layers: int, a: float, sums: int = 2) -> float:
    """Milliseconds of a step. t: on one card; t0: of it, what does not shrink; a: an all-reduce; sums: of a layer."""
    return t0 + (t - t0) / cards + (sums * layers * a if cards > 1 else 0.0)


def dollars(step_ms: float, cards: int, batch: int, price: float) -> float:
    """For a million tokens. price: of a card, an hour."""
    return prices.per_million(batch / (step_ms / 1e3), price, cards)


def cost(t: float, t0: float, cards: int, layers: int, a: float, batch: int, price: float, sums: int = 2) -> float:
    """Dollars for a million tokens on cards that share a step."""
    return dollars(step(t, t0, cards, layers, a, sums), cards, batch, price)


def cost_one_card(t: float, t0: float, cards: int, layers: int, a: float, batch: int, price: float) -> float:
    """As if the other cards were free."""
    return cost(t, t0, cards, layers, a, batch, price) / cards


def cost_one_user(t: float, t0: float, cards: int, layers: int, a: float, batch: int, price: float) -> float:
    """As if a step brought one token."""
    return cost(t, t0, cards, layers, a, 1, price)


def cost_seconds(t: float, t0: float, cards: int, layers: int, a: float, batch: int, price: float) -> float:
    """As if the price were for a second."""
    return prices.HOUR * cost(t, t0, cards, layers, a, batch, price)


def cost_all_shrinks(t: float, t0: float, cards: int, layers: int, a: float, batch: int, price: float) -> float:
    """As if nothing stayed."""
    return cost(t, 0.0, cards, layers, a, batch, price)


def cost_one_sum(t: float, t0: float, cards: int, layers: int, a: float, batch: int, price: float) -> float:
    """With one all-reduce a layer."""
    return cost(t, t0, cards, layers, a, batch, price, sums=1)


def cost_no_sums(t: float, t0: float, cards: int, layers: int, a: float, batch: int, price: float) -> float:
    """Without all-reduces."""
    return cost(t, t0, cards, layers, a, batch, price, sums=0)


def cost_stays_twice(t: float, t0: float, cards: int, layers: int, a: float, batch: int, price: float) -> float:
    """As if t0 came on top of t."""
    return dollars(t0 + step(t, 0.0, cards, layers, a), cards, batch, price)


def cost_alone_adds(t: float, t0: float, cards: int, layers: int, a: float, batch: int, price: float) -> float:
    """As if one card had something to add up."""
    return dollars(t0 + (t - t0) / cards + 2 * layers * a, cards, batch, price)


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
