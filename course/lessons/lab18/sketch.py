"""The curve of lab 18 that is drawn before it is seen: the score of vLLM's defaults over the number of cards."""

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab18.design import Design
from course.lessons.lab18.search import tried

CARDS = (1, 2, 3, 4, 5, 6)


def scores() -> Points:
    """In thousands of requests a dollar, on the seen day."""
    return [(cards, tried(Design(replicas=cards)) / 1_000) for cards in CARDS]


SCORE = Sketch(
    x=Axis("H100", 0.7, 6.3, CARDS),
    y=Axis("score [1,000 requests a dollar]", 0, 30, (0, 10, 20, 30)),
    columns=CARDS,
    named="{x:g} H100",
    value="{y} thousand",
    truth=scores,
    beliefs={
        "more-cards-score-more": Belief(lambda y: y[-1] >= max(y) - 1 and y[-1] > y[0] + 3, lambda x: 4 * x),
        "fewest-cards-are-best": Belief(lambda y: y[0] > max(y[1:]) + 1, lambda x: 28 / x),
    },
)
