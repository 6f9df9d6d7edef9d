"""The curve of lab 05 that is drawn before it is seen: the p95 of TTFT over the window, in a chat on a busy card."""

from __future__ import annotations

from collections.abc import Sequence

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab05 import on_a_card

RATE = 12  # requests/s
WINDOWS = (0, 10, 20, 30, 40, 50)  # ms
AT_NONE = 55.5  # ms, without a window: given, and tested to be what the run says


def tails() -> Points:
    """The p95 of TTFT [ms] behind each window."""
    return [(window, 1e3 * on_a_card.served(on_a_card.CHAT, RATE, float(window)).p95) for window in WINDOWS]


def rise(y: Sequence[float]) -> float:
    """By how many ms the longest window is above none."""
    return y[-1] - y[0]


P95 = Sketch(
    x=Axis("window [ms]", -2, 52, WINDOWS),
    y=Axis("p95 of TTFT [ms]", 0, 120, (0, 20, 40, 60, 80, 100, 120)),
    columns=WINDOWS,
    given={0: AT_NONE},
    named="{x:g} ms",
    value="{y} ms",
    truth=tails,
    beliefs={
        "everybody-waits": Belief(lambda y: rise(y) > 35, lambda x: AT_NONE + x),
        "half-the-window": Belief(lambda y: 12 < rise(y) <= 35, lambda x: AT_NONE + x / 2),
        "company-pays": Belief(lambda y: rise(y) < -10, lambda x: AT_NONE - 0.6 * x),
    },
)
