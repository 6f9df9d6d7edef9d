"""What lab 15 leaves out: the note's policy by load, two orders on short steps, rejecting, slots, and a step target."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from course import policies
from course.lessons.lab15 import promises
from course.lessons.lab15.promises import BUDGET, PACE, SLOTS, SMALL, STEP, TPOT, Both, Outcome
from course.policies import Continuous, EarliestDeadline, HopelessLast, Policy, State, StepTarget
from course.policies.base import Order
from course.policies.step_target import GRAIN
from course.policies.waiting import Waiting

FEW = (SLOTS, 256, 128)  # slots
SEEDS = range(5)
Own = Callable[[Callable[[int], float], float, int], int]


class Urgent(StepTarget):
    """A short step, and the earliest deadline first."""

    def queue(self, state: State, waiting: Waiting) -> Order:
        """Requests that wait, by their deadline."""
        return Order(waiting.sorted_by(attrgetter("due", "index")))


@lru_cache(maxsize=64)
def served(name: str, slots: int = SLOTS, seed: int = 0) -> Outcome:
    """The minute of the story under a policy by its name, with so many slots at most."""
    return promises.outcome(promises.requests(seed=seed), engine(name, slots))


BY_LOAD, URGENT, URGENT_FLAG, LAST_FLAG, REJECTING = (
    "by load (the notes)", "step target + earliest deadline", f"budget {SMALL} + earliest deadline",
    f"budget {SMALL} + hopeless last", f"budget {SMALL} + hopeless rejected",
)  # fmt: skip


ORDERS = (promises.TARGET, URGENT, promises.BOTH, promises.FLAG, URGENT_FLAG, LAST_FLAG)


def engine(name: str, slots: int) -> Policy:
    """A policy by its name. A small budget has as many slots at most."""
    few, target = min(slots, SMALL), dict[str, Any](step_time=STEP, target=TPOT)
    made: dict[str, Callable[[], Policy]] = {
        promises.DEFAULTS: lambda: Continuous(slots, BUDGET),
        promises.EARLIEST: lambda: EarliestDeadline(slots, BUDGET),
        promises.HOPELESS: lambda: HopelessLast(slots, BUDGET, tokens_per_second=PACE),
        promises.FLAG: lambda: Continuous(few, SMALL),
        promises.TARGET: lambda: StepTarget(slots, BUDGET, **target),
        promises.BOTH: lambda: Both(slots, BUDGET, tokens_per_second=PACE, **target),
        BY_LOAD: lambda: policies.LoadDependent(slots),
        URGENT: lambda: Urgent(slots, BUDGET, **target),
        URGENT_FLAG: lambda: EarliestDeadline(few, SMALL),
        LAST_FLAG: lambda: HopelessLast(few, SMALL, tokens_per_second=PACE),
        REJECTING: lambda: promises.Rejecting(few, SMALL, tokens_per_second=PACE),
    }
    return made[name]()


def load(found: Outcome) -> float:
    """The largest share of the slots that was taken."""
    return float(found.run.steps.running.max() / found.run.policy.max_num_seqs)


def answered_ttft(found: Outcome) -> float:
    """p95 of the chats that were answered [s]."""
    return float(np.nanpercentile(found.run.ttft[found.chat], 95))


class Yours(StepTarget):
    """A step target whose tokens a function chooses: see `largest`."""

    def __init__(self, function: Own):
        self.function = function
        super().__init__(SLOTS, BUDGET, step_time=STEP, target=TPOT)

    def room(self, state: State) -> int:
        """What the function says. ValueError for anything but whole tokens that the step has room for."""
        most = Continuous.room(self, state)
        if not state.decodes or most <= GRAIN:
            return most
        cached = state.prefilling[0].computed if state.prefilling else 0
        tokens = self.function(lambda tokens: self._seconds(state, tokens, cached), self.target, most)
        if type(tokens) is not int or not 0 < tokens <= most:
            raise ValueError(f"your function must return whole tokens from 1 to {most}, not {tokens!r}")
        return tokens


def largest(seconds: Callable[[int], float], target: float, most: int) -> int:
    """The most tokens, a multiple of GRAIN and at least that, with which a step lasts no longer than the target."""
    tokens = GRAIN
    while tokens + GRAIN <= most and seconds(tokens + GRAIN) <= target:
        tokens += GRAIN
    return tokens


def with_yours(function: Own) -> Outcome:
    """The minute of the story with this function."""
    return promises.outcome(promises.requests(), Yours(function))
