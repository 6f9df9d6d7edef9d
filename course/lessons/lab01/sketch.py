"""The curve of lab 01 that is drawn before it is seen: the mean wait in an admission window over the arrival rate."""

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab01.chat import WINDOW_MS, mean_window_wait

CROWD, CROWDED = 100, 54.5  # requests/s, and the mean wait at this rate [ms]
RATES = (0.5, 2, 5, 10, 20, 50, CROWD)


def waits() -> Points:
    """Mean wait [ms] in the window at each rate, under Poisson arrivals."""
    return [(rate, 1e3 * mean_window_wait(WINDOW_MS / 1e3, rate)) for rate in RATES]


WAIT = Sketch(
    x=Axis("arrival rate [requests/s]", 0.42, 120, RATES, log=True),
    y=Axis("mean wait in the window [ms]", 0, 100, (0, 25, 50, 75, 100)),
    columns=RATES,
    given={CROWD: CROWDED},
    named="{x:g} requests/s",
    value="{y} ms",
    truth=waits,
    beliefs={
        "empty-window-is-free": Belief(lambda y: y[0] < 35 and y[1] < 40, lambda x: CROWDED * min(1, x / 50)),
        "half-the-window": Belief(lambda y: all(40 <= one <= 64 for one in y), lambda x: WINDOW_MS / 2),
    },
)
