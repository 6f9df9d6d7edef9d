"""The curve of lab 03 that is drawn before it is seen: the p99 of TTFT over the arrival rate."""

from collections.abc import Sequence

import numpy as np

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab03 import one_engine

RATES = (4, 6, 8, 10, 12, 14, 16)
TODAY, SOON = RATES.index(10), RATES.index(14)


def tails() -> Points:
    """The p99 of TTFT [ms] of 2,000 requests at each rate, with 32 slots."""
    return [(rate, 1e3 * float(np.percentile(one_engine.under_load(rate).run.ttft, 99))) for rate in RATES]


def growth(y: Sequence[float]) -> float:
    """How many times as long it gets from 10 to 14 requests/s."""
    return y[SOON] / y[TODAY]


TAIL = Sketch(
    x=Axis("arrival rate [requests/s]", 3.4, 16.6, RATES),
    y=Axis("p99 of TTFT [ms]", 10, 10_000, (10, 100, 1_000, 10_000), log=True),
    columns=RATES,
    given={10: 35.0},
    named="{x:g} requests/s",
    value="{y} ms",
    truth=tails,
    close=1.6,  # three decades: a fifteenth of the axis
    beliefs={
        "queues-grow-gently": Belief(lambda y: 1.7 <= growth(y) < 6, lambda x: 35 * (x / 10) ** 2.5),
        "latency-follows-traffic": Belief(lambda y: 1.15 <= growth(y) < 1.7, lambda x: 3.5 * x),
        "safe-below-capacity": Belief(lambda y: growth(y) < 1.15, lambda x: 35 if x < 15 else 3_000),
    },
)
