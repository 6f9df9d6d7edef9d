"""Hopeless last: continuous batching that admits first those who can still meet their deadline."""

import math
from itertools import chain
from typing import Any

from course.base import settings
from course.policies.base import Order, Request, State
from course.policies.continuous import Continuous
from course.policies.waiting import Waiting


class HopelessLast(Continuous):
    """Of those that wait, who has to start soonest to meet its deadline comes first, and who no longer can comes last.

        policies.HopelessLast(256, 8_192, tokens_per_second=20_000)

    A request has to start at its deadline less its prompt at `tokens_per_second`; without a deadline it has time for
    ever. Later it is hopeless, and gives way to all who are not. It is served all the same, when there is
    nobody else to serve: nobody is rejected. others: settings of Continuous. Who wants a target for the step besides
    makes a class of both: `class Both(HopelessLast, StepTarget)`.

    Raises ValueError as Continuous does, and for tokens_per_second that is not above 0.
    """

    def __init__(self, max_num_seqs: int, max_num_batched_tokens: int, *, tokens_per_second: float, **others: Any):
        self.tokens_per_second = tokens_per_second
        super().__init__(max_num_seqs, max_num_batched_tokens, **others)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for tokens_per_second that is not above 0."""
        super().check_settings()
        given = getattr(self, "tokens_per_second", None)
        self.tokens_per_second = settings.real("tokens_per_second", given, low=1e-3, high=settings.MAX_TOKENS)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, tokens_per_second={self.tokens_per_second:g})"

    def start_by(self, request: Request) -> tuple[float, int]:
        """When it has to start to meet its deadline [s], and its row."""
        return request.due - request.prompt_tokens / self.tokens_per_second, request.index

    def queue(self, state: State, waiting: Waiting) -> Order:
        """Who can still meet a deadline, the most urgent first, then the others; until the next one cannot any more."""
        ready, late = waiting.split_by(self.start_by, (state.now, -1))
        first = next(ready, None)
        if first is None:
            return Order(late, math.inf)
        return Order(chain((first,), ready, late), math.nextafter(self.start_by(first)[0], math.inf))
