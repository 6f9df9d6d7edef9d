"""The curve of lab 11 that is drawn before it is seen: tokens of a rectangle over the spread of lengths."""

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab11 import shapes
from course.lessons.lab11.batch import SPREAD

COLUMNS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)


def ratio(spread: float, mix: str = SPREAD, seed: int = shapes.SEED) -> float:
    """Tokens of the rectangle, times those of the prompts."""
    found = shapes.one_batch(mix, spread, seed=seed)
    return found.rectangle.tokens / found.packed.tokens


def ratios() -> Points:
    """In the draw of prompts that the lab shows."""
    return [(spread, ratio(spread)) for spread in COLUMNS]


PADDING = Sketch(
    x=Axis("spread, standard deviation over mean", 0, 2, COLUMNS),
    y=Axis("tokens computed, times the prompts' own", 1, 16, (1, 2, 4, 8, 16), log=True),
    columns=COLUMNS,
    named="a spread of {x:g}",
    value="{y} times",
    truth=ratios,
    beliefs={
        "padding-is-rounding": Belief(lambda y: max(y) < 1.5, lambda x: 1 + 0.15 * x),
        "padding-is-twice": Belief(lambda y: 1.5 < y[-1] < 2.8, lambda x: 1 + 0.5 * x),
    },
)
