"""The curve of lab 04 that is drawn before it is seen: the gain over the slots, and who draws what."""

from collections.abc import Sequence

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab04 import three_batchers

SLOTS = (1, 2, 4, 8, 16, 32, 64, 128)
SPREAD = 1.0  # of answers, as in the chat


def gains() -> Points:
    """The gain in tokens/s at each number of slots; with one slot there is nobody to wait for."""
    return [(1, 1.0), *((slots, three_batchers.gain(slots, SPREAD).gain) for slots in SLOTS[1:])]


def flat(y: Sequence[float]) -> float:
    """The level of a curve that stays where it is from 4 slots on; 0 for another one."""
    return sum(y[2:]) / len(y[2:]) if max(y[2:]) < 1.2 * min(y[2:]) else 0.0


GAIN = Sketch(
    x=Axis("slots", 0.9, 142, SLOTS, log=True),
    y=Axis("gain in tokens/s [times]", 0.5, 200, (0.5, 1, 2, 5, 10, 20, 50, 100, 200), log=True),
    columns=SLOTS,
    given={1: 1.0},
    named="{x:g} slots",
    value="{y} times",
    truth=gains,
    beliefs={
        "slots-are-speed": Belief(lambda y: y[5] > 12 and y[7] > y[5], lambda x: x),
        "bigger-batches-heal": Belief(lambda y: y[7] < 0.8 * max(y), lambda x: 1 + 6 / x if x > 1 else 1),
        "same-batch-same-ratio": Belief(lambda y: flat(y) > 1.5, lambda x: 3),
        "gain-is-a-constant": Belief(lambda y: 1.1 < flat(y) <= 1.5, lambda x: 1.25),
    },
)
