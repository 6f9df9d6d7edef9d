"""The curve of lab 14 that is drawn before it is seen: a step of one sequence over the cards, and who draws what."""

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab14 import cards


def steps() -> Points:
    """Milliseconds of a step of one sequence; more than two cards are extrapolated."""
    return [(count, 1e3 * cards.spread(count, 1).step) for count in cards.CARDS]


STEPS = Sketch(
    x=Axis("cards", 0.9, 9, cards.CARDS, log=True),
    y=Axis("step [ms]", 0.3, 12, (0.5, 1, 2, 4, 8), log=True),
    columns=cards.CARDS,
    named="{x:g} cards",
    value="{y} ms",
    truth=steps,
    beliefs={
        "cards-divide-the-step": Belief(lambda y: y[-1] < y[0] / 4, lambda x: 3.7 / x),
        "cards-only-add-waits": Belief(lambda y: y[-1] > y[0], lambda x: 3.7 * x**0.2),
    },
)
