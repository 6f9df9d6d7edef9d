"""The curve of lab 07 that is drawn before it is seen: how long newcomers wait, over the token budget."""

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab07.long_prompt import WHOLE, served

BUDGETS = (512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, WHOLE)
NOW = 2.34  # seconds


def waits() -> Points:
    """The p99 TTFT of chats [s] with each budget, and no cap."""
    return [(budget, served(budget).chat_ttft["p99"]) for budget in BUDGETS]


WAIT = Sketch(
    x=Axis("token budget [tokens]", 450, 75_000, BUDGETS, log=True),
    y=Axis("p99 TTFT of chats [s]", 0.01, 10, (0.01, 0.1, 1, 10), log=True),
    columns=BUDGETS,
    given={WHOLE: NOW},
    named="{x:,} tokens",
    value="{y} s",
    truth=waits,
    beliefs={
        "chunks-let-others-in": Belief(lambda y: y[0] < 0.25 * NOW, lambda x: NOW * x / WHOLE),
        "wait-for-half": Belief(lambda y: 0.25 * NOW <= y[0] < 0.8 * NOW, lambda x: NOW / 2 if x < WHOLE else NOW),
    },
)
