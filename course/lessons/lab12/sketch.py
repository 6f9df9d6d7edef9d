"""The curve of lab 12 that is drawn before it is seen: the time of a step over the kernels that a program launches."""

from __future__ import annotations

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab12.on_device import LAUNCHES
from course.lessons.lab12.recorded import recording

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
ALONE_US = 18
"""Of a step of one kernel: told to whoever draws, and tested to be what was recorded."""


def steps() -> Points:
    """The time of a step [us] for each number of kernels."""
    return [(count, 1e6 * recording().of_count(LAUNCHES, count).wall) for count in COUNTS]


STEP = Sketch(
    x=Axis("kernels of a step", 0.85, 150, COUNTS, log=True),
    y=Axis("a step [µs]", 8, 6_000, (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000), log=True),
    columns=COUNTS,
    given={1: ALONE_US},
    named="{x:,g} kernels",
    value="{y} µs",
    truth=steps,
    beliefs={
        "launches-are-free": Belief(lambda y: y[-1] < 6 * y[0], lambda x: ALONE_US * x**0.2),
        "each-launch-goes-there-and-back": Belief(lambda y: y[-1] > 80 * y[0], lambda x: ALONE_US * x),
    },
)
