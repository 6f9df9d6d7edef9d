"""The curve of lab 00 that is drawn before it is seen: a step's time over the sequences in it."""

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab00 import together

SEQUENCES = (1, 2, 4, 8, 16, 32, 64)


def steps() -> Points:
    """Milliseconds of a step on the H100, as recorded, with so many sequences of 512 tokens."""
    return [(sequences, 1e3 * together.on_h100(sequences)) for sequences in SEQUENCES]


STEP = Sketch(
    x=Axis("sequences in the step", 0.9, 72, SEQUENCES, log=True),
    y=Axis("time of the step [ms]", 2, 500, (2, 5, 10, 20, 50, 100, 200, 500), log=True),
    columns=SEQUENCES,
    given={1: 5.0},
    named="{x:g} sequences",
    value="{y} ms",
    truth=steps,
    beliefs={
        "a-step-for-each": Belief(lambda y: y[4] > 40, lambda x: 5 * x),
        "batching-saves-some": Belief(lambda y: 10 < y[4] <= 40, lambda x: 5 * x**0.5),
    },
)
