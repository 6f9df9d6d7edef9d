"""The curve of lab 13 that is drawn before it is seen: the speed-up over the batch, and who draws what."""

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab13 import pays


def gains() -> Points:
    """The speed-up at each batch, with four drafts of the head and an acceptance of 0.7."""
    return list(zip(pays.BATCHES, pays.curve(pays.HEAD, 4, 0.7), strict=True))


GAIN = Sketch(
    x=Axis("batch [sequences]", 0.9, 290, pays.BATCHES, log=True),
    y=Axis("speed-up [times]", 0.25, 16, (0.25, 0.5, 1, 2, 4, 8, 16), log=True),
    columns=pays.BATCHES,
    named="a batch of {x:g}",
    value="{y} times",
    truth=gains,
    beliefs={
        "speculation-multiplies": Belief(lambda y: y[-1] > 1.3 * y[0], lambda x: 2 * x**0.3),
        "speculation-keeps-its-gain": Belief(lambda y: min(y) > 1.2 and max(y) < 1.3 * min(y), lambda x: 2.5),
    },
)
