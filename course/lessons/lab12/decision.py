"""Lab 12's decision: graphs or async scheduling, as flags. The simulator says whether the promise holds with one."""

from __future__ import annotations

from typing import Any

from course.exercises.decision import the_flag
from course.lessons.lab12 import who_waits
from course.lessons.lab12.recorded import LARGE, SMALL
from course.lessons.lab12.who_waits import AFTER, DURING, GRAPH, LAUNCHES, Waits

ASYNC, GRAPHS, SLOTS = "--async-scheduling", "--max-cudagraph-capture-size", "--max-num-seqs"
GOAL_MS, GOAL_TWIN_MS = 4.1, 0.2  # of TPOT: promised for the 8B, and for the small model in the twin
PLAN_TWIN_MS = 0.1
CAPTURED = 512  # the largest size that vLLM captures by itself


def kept(answer: Any) -> str:
    """Whether the promise holds for the 8B with that flag, in words.

    Raises ValueError: no flag of the question or several, or a value that no engine takes. NotImplementedError: none.
    """
    return _kept(answer, LARGE, who_waits.PLAN_MS, GOAL_MS)


def kept_twin(answer: Any) -> str:
    """The same for the small model, whose program is quicker."""
    return _kept(answer, SMALL, PLAN_TWIN_MS, GOAL_TWIN_MS)


def with_flag(flag: str, model: str = LARGE, plan_ms: float = who_waits.PLAN_MS) -> Waits:
    """The service with one of the two set as it should be; with any other name, as it is."""
    form = GRAPH if flag == GRAPHS else LAUNCHES
    return who_waits.waits(model, form, DURING if flag == ASYNC else AFTER, plan_ms)


def _kept(answer: Any, model: str, plan_ms: float, goal_ms: float) -> str:
    flag, value = the_flag(answer, f"{{{SLOTS!r}: 16}}")
    if flag not in (ASYNC, GRAPHS, SLOTS):
        raise ValueError(f"{flag} is none of the flags of the question: choose {ASYNC}, {GRAPHS} or {SLOTS}")
    if flag == ASYNC and isinstance(value, bool):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or (flag == ASYNC and value > 1):
        allowed = "1 is on, 0 is off" if flag == ASYNC else "give a whole number of sequences"
        raise ValueError(f"{flag} is {value!r}: {allowed}")
    if flag == GRAPHS and value < who_waits.BATCH:
        return "steps are launched"
    if flag == GRAPHS and value > CAPTURED:
        return f"graphs above {CAPTURED} take memory, and no step here is so large"
    if flag == SLOTS:
        return "slots are no limit here" if value >= who_waits.BATCH else "some of the eight wait for a slot"
    if not value:
        return "nothing changes"
    if 1e3 * with_flag(flag, model, plan_ms).step <= goal_ms:
        return "the promise holds"
    return f"a step takes too long with {flag}"
