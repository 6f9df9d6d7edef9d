"""Five requests, few enough for a pencil: N asks for four answers, and A, behind them, for one."""

from functools import lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.engine.step import Step
from course.workload import Workload

PROMPT, ANSWER = 4, 4  # tokens
NAMES = ("N", "N", "N", "N", "A")
ORDERS = {"first come, first served": policies.Continuous, "fair": policies.Fair}


def by_requests(step: Step) -> float:
    """A second for each request in the step: a card that is full computes no faster for being asked for more."""
    return float(step.decodes + len(step.prefill_chunks))


@lru_cache(maxsize=8)
def served(order: str, slots: int) -> Run:
    """The five with so many slots."""
    load = Workload(np.zeros(5), np.full(5, PROMPT), np.full(5, ANSWER), tenant=np.array(NAMES))
    return serve(load, ORDERS[order](slots, 64), by_requests)
