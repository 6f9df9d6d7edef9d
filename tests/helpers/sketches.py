"""Two sketches for the tests: a power law on logarithmic axes, and a queue on straight ones."""

from __future__ import annotations

from course.explore.sketch import Axis, Belief, Sketch

SQUARE = Sketch(
    x=Axis("side [m]", 0.9, 40, (1, 2, 4, 8, 16, 32), log=True),
    y=Axis("area [m²]", 0.5, 2_000, (1, 10, 100, 1_000), log=True),
    columns=(1, 2, 4, 8, 16, 32), given={1: 1.0}, named="{x:g} m", value="{y} m²",
    truth=lambda: [(x, x * x) for x in (1, 2, 4, 8, 16, 32)],
    beliefs={
        "area-is-length": Belief(lambda y: y[5] < 60 and y[5] > 8, lambda x: x),
        "area-stays": Belief(lambda y: max(y) < 2, lambda x: 1.0),
    },
)  # fmt: skip
QUEUE = Sketch(
    x=Axis("load", 0, 1, (0, 0.5, 1)), y=Axis("wait [s]", 0, 20, (0, 10, 20)), columns=(0, 0.2, 0.4, 0.6, 0.8, 0.9),
    given={0: 0.0}, value="{y} s", truth=lambda: [(x / 100, x / (100 - x)) for x in range(96)],
    beliefs={"grows-evenly": Belief(lambda y: y[2] > 4 and y[5] > 8, lambda x: 14 * x)},
)  # fmt: skip
