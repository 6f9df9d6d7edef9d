"""The curve of lab 10 that is drawn before it is seen: the hit rate of agents over the pool, and who draws what."""

from collections.abc import Sequence

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab10 import chats

BLOCKS = (2_000, 10_000, 18_000, 26_000, 34_000, 42_000, 50_000)


def rates() -> Points:
    """The hit rate in each pool [%]."""
    return [(blocks, 100 * chats.returned(blocks).hit_rate) for blocks in BLOCKS]


def spread(y: Sequence[float]) -> float:
    """From the lowest point to the highest."""
    return max(y) - min(y)


def even(y: Sequence[float]) -> bool:
    """Whether a curve rises by much, and about as much in its first half as in its second."""
    first, second = y[3] - y[0], y[-1] - y[3]
    return spread(y) > 25 and min(first, second) > 0.5 * max(first, second)


HITS = Sketch(
    x=Axis("KV pool [blocks]", 0, 52_000, BLOCKS),
    y=Axis("hit rate [%]", 0, 100, (0, 20, 40, 60, 80, 100)),
    columns=BLOCKS,
    named="{x:,.0f} blocks",
    value="{y}%",
    truth=rates,
    beliefs={
        "hit-rate-is-the-traffics": Belief(lambda y: spread(y) < 12, lambda x: 60),
        "each-block-buys-the-same": Belief(even, lambda x: 10 + 80 * x / 52_000),
        "first-blocks-buy-most": Belief(
            lambda y: spread(y) > 25 and y[2] - y[0] > 2 * (y[-1] - y[2]), lambda x: 85 * (1 - 2 ** (-x / 6_000))
        ),
    },
)
