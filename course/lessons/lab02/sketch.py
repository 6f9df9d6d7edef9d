"""The curve of lab 02 that is drawn before it is seen: tokens/s over the batch."""

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab02.one_step import CONTEXT, points

BATCHES = (1, 4, 8, 16, 32, 64, 128, 256)
ALONE = 197.0  # tokens/s of one sequence


def speeds() -> Points:
    """Tokens/s of each recorded batch, all with 1,024 tokens."""
    batches, steps = points(CONTEXT)
    return [(int(batch), float(batch / step)) for batch, step in zip(batches, steps, strict=True)]


SPEED = Sketch(
    x=Axis("sequences in the step", 0.9, 290, BATCHES, log=True),
    y=Axis("all together [tokens/s]", 100, 100_000, (100, 1_000, 10_000, 100_000), log=True),
    columns=BATCHES,
    given={1: ALONE},
    named="{x:g} sequences",
    value="{y} tokens/s",
    truth=speeds,
    beliefs={
        "gpu-fills-early": Belief(lambda y: y[7] < 2 * y[3] and y[7] < 6_000, lambda x: ALONE * min(x, 8)),
        "ridge-is-the-knee": Belief(lambda y: y[7] > 150 * ALONE, lambda x: ALONE * x),
    },
)
