"""Lab 12's decision: two flags slow a service, and one of them may go. The simulator says which promise then holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course.exercises.decision import flag_typed
from course.lessons.lab12 import who_waits
from course.lessons.lab12.recorded import LARGE, SMALL
from course.lessons.lab12.who_waits import AFTER, DURING, GRAPH, LAUNCHES, Waits

EAGER, BLOCKING, SLOTS = "--enforce-eager", "--no-async-scheduling", "--max-num-seqs"
GOAL_MS, GOAL_TWIN_MS = 4.1, 0.2  # of TPOT: promised for the 8B, and for the small model in the twin
PLAN_TWIN_MS = 0.1


def kept(answer: Any) -> str:
    """Whether the promise holds for the 8B once that flag is taken out, in words.

    Raises ValueError for an answer that does not name one of the flags, NotImplementedError for none.
    """
    return _kept(answer, LARGE, who_waits.PLAN_MS, GOAL_MS)


def kept_twin(answer: Any) -> str:
    """The same for the small model, whose program is quicker."""
    return _kept(answer, SMALL, PLAN_TWIN_MS, GOAL_TWIN_MS)


def without(flag: str, model: str = LARGE, plan_ms: float = who_waits.PLAN_MS) -> Waits:
    """The service once one of the two flags is gone; with any other name, as it is."""
    form = GRAPH if flag == EAGER else LAUNCHES
    return who_waits.waits(model, form, DURING if flag == BLOCKING else AFTER, plan_ms)


def _kept(answer: Any, model: str, plan_ms: float, goal_ms: float) -> str:
    if not isinstance(answer, Mapping):
        raise ValueError(f'give a dictionary such as {{"remove": "{EAGER}"}}')
    chosen = [value for value in answer.values() if value is not None]
    if not chosen:
        raise NotImplementedError("no flag is chosen yet")
    if len(chosen) > 1 or list(answer) != ["remove"]:
        raise ValueError(f'choose one flag to remove, such as {{"remove": "{EAGER}"}}')
    flag = flag_typed(chosen[0])
    if flag not in (EAGER, BLOCKING, SLOTS):
        raise ValueError(f"{chosen[0]} is no flag of this service: choose {EAGER}, {BLOCKING} or {SLOTS}")
    if 1e3 * without(flag, model, plan_ms).step <= goal_ms:
        return "the promise holds"
    return "nothing changes" if flag == SLOTS else f"too long, without {flag}"
