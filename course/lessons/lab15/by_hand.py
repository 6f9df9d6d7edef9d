"""Four requests on one slot, few enough for a pencil: the second one is late whatever happens."""

from functools import lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.board import one_second
from course.policies import Policy
from course.workload import Workload

STEPS, DUE = (4, 4, 2, 2), (4.0, 7.0, 8.0, 10.0)  # each takes so many steps of a second, and is due then
SLOTS, TOKENS, PACE = 1, 64, 1.0
ORDERS = ("earliest deadline first", "hopeless last")


def engine(order: str) -> Policy:
    """One of the two orders. As many prompt tokens as steps: so an order knows how long each will take."""
    if order == ORDERS[0]:
        return policies.EarliestDeadline(SLOTS, TOKENS)
    return policies.HopelessLast(SLOTS, TOKENS, tokens_per_second=PACE)


@lru_cache(maxsize=2)
def served(order: str) -> Run:
    """The four in this order."""
    load = Workload(np.zeros(len(STEPS)), np.array(STEPS), np.array(STEPS), deadline=np.array(DUE))
    return serve(load, engine(order), one_second)


def late(order: str) -> int:
    """How many answers come after they are due."""
    return int((served(order).e2e > np.array(DUE)).sum())
