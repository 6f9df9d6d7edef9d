"""Five requests, few enough for a pencil: N asks for four answers, and A comes a second later."""

from functools import lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.engine.step import Step
from course.workload import Workload

PROMPT, ANSWER, LATER = 4, 4, 1.0  # tokens; seconds
NAMES = ("N", "N", "N", "N", "A")
ORDERS = {"first come, first served": policies.Continuous, "fair": policies.Fair}


def by_requests(step: Step) -> float:
    """A second for each request in the step: a card that is full computes no faster for being asked for more."""
    return float(step.decodes + len(step.prefill_chunks))


@lru_cache(maxsize=8)
def served(order: str, slots: int) -> Run:
    """The five with so many slots."""
    load = Workload(np.array([0.0] * 4 + [LATER]), np.full(5, PROMPT), np.full(5, ANSWER), tenant=np.array(NAMES))
    return serve(load, ORDERS[order](slots, 64), by_requests)
