"""The curve of lab 06 that is drawn before it is seen: the longest gap over the budget, with prompts first."""

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab06 import two_orders

BUDGETS = (512, 1_024, 2_048, 4_096, 8_192)


WHOLE_MS = 790
"""What it is with the engine's default budget, rounded: told to whoever draws."""


def gaps() -> Points:
    """The longest gap at each budget [ms]."""
    return [(budget, 1e3 * two_orders.served(two_orders.FIRST, budget).gap) for budget in BUDGETS]


GAP = Sketch(
    x=Axis("token budget", 440, 9_500, BUDGETS, log=True),
    y=Axis("longest gap [ms]", 20, 8_000, (20, 50, 100, 200, 500, 1_000, 2_000, 5_000), log=True),
    columns=BUDGETS,
    given={8_192: WHOLE_MS},
    named="{x:,g} tokens",
    value="{y} ms",
    truth=gaps,
    beliefs={
        "smaller-steps-smaller-gaps": Belief(lambda y: y[0] < 0.5 * y[-1], lambda x: WHOLE_MS * x / 8_192),
        "chunks-multiply-gaps": Belief(lambda y: y[0] > 2 * y[-1], lambda x: WHOLE_MS * (8_192 / x) ** 0.5),
    },
)
