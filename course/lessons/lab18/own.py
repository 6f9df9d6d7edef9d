"""A policy of the learner's own: vLLM's scheduler in the order that a function says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from course.lessons.lab18 import service
from course.lessons.lab18.design import Design
from course.lessons.lab18.scoring import score
from course.lessons.lab18.search import REFERENCE
from course.policies import Continuous
from course.policies.base import Request, State

Order = Callable[[list[tuple[float, float, int]], float], Any]
SMALL = replace(REFERENCE, card="H200", replicas=1)
"""Too little for the day in order of arrival: somebody waits, and an order acts on who waits."""


class Ordered(Continuous):
    """Those that wait in the function's order."""

    def __init__(self, order: Order, max_num_seqs: int, max_num_batched_tokens: int, cap: int = 0):
        self.order = order
        super().__init__(max_num_seqs, max_num_batched_tokens, long_prefill_token_threshold=cap)

    def queue(self, state: State, waiting: Sequence[Request]) -> list[Request]:
        """ValueError for an order that leaves somebody out, or names somebody twice."""
        line = list(waiting)
        shown = [(one.arrival, one.slo.ttft, one.prompt_tokens) for one in line]
        places = self.order(shown, state.now)
        if not isinstance(places, list) or sorted(places) != list(range(len(line))):
            raise ValueError(f"your function must return each of the {len(line)} places once, not {places!r}")
        return [line[place] for place in places]


def ordered(order: Order) -> Callable[[Design], Continuous]:
    """What `score` takes as its policy."""

    def made(design: Design) -> Continuous:
        cap = design.long_prefill_token_threshold
        return Ordered(order, design.max_num_seqs, design.max_num_batched_tokens, cap)

    return made


def empty(order: Order) -> bool:
    """Whether the function is still the stub."""
    return order([(0.0, 1.0, 10)], 0.5) is None


def compared(order: Order) -> list[tuple[str, ...]]:
    """Shares within the promise on the small fleet, in order of arrival and in the function's order."""
    load = service.day(service.BEFORE)
    found = {"first come, first served": score(SMALL, load), "your order": score(SMALL, load, ordered(order))}
    return [("", *service.PROMISES)] + [
        (name, *(f"{share:.1%}" for share in one.share.values())) for name, one in found.items()
    ]
