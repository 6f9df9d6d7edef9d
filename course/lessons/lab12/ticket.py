"""The ticket of lab 12: a card that computes for 60% of the time beside a core at 100%, and what mends it."""

from course.lessons.lab12 import who_waits
from course.lessons.lab12.on_device import LAUNCHES
from course.lessons.lab12.recorded import SMALL
from course.lessons.lab12.who_waits import DURING, Waits

PLAN_MS, BATCH = 0.02, 32
"""Of an engine that is no Python program, and the sequences of its steps."""


def now() -> Waits:
    """Kernels are launched one by one, the next step is planned during the last one."""
    return who_waits.waits(SMALL, LAUNCHES, DURING, PLAN_MS, BATCH)


def mended() -> Waits:
    """The same with graphs."""
    return who_waits.waits(SMALL, who_waits.GRAPH, DURING, PLAN_MS, BATCH)


def quicker_plan() -> Waits:
    """The same with a plan in no time."""
    return who_waits.waits(SMALL, LAUNCHES, DURING, 0.001, BATCH)
