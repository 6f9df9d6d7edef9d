"""The curve of lab 08 that is drawn before it is seen: the requests that run at once, over the length of answers."""

from collections.abc import Sequence

from course.explore.sketch import Axis, Belief, Points, Sketch
from course.lessons.lab08.kv_pool import ANSWER_CV, PROMPT, TOKENS

ANSWERS = (64, 128, 256, 512, 1_024, 2_048)


def residents() -> Points:
    """Requests for which the pool has room, by the lab's formula: a CV of 1, prompts of 1,024 tokens."""
    return [(answer, TOKENS / (PROMPT + answer * (1 + ANSWER_CV**2) / 2)) for answer in ANSWERS]


def level(y: Sequence[float]) -> float:
    """The level of a curve that stays where it is; 0 for another one."""
    return sum(y) / len(y) if max(y) < 1.3 * min(y) else 0.0


FIT = Sketch(
    x=Axis("tokens in an answer, mean", 56, 2_400, ANSWERS, log=True),
    y=Axis("requests at once", 2, 400, (2, 5, 10, 20, 50, 100, 200, 400), log=True),
    columns=ANSWERS,
    named="answers of {x:,}",
    value="{y} requests",
    truth=residents,
    beliefs={
        "printed-concurrency-is-a-limit": Belief(lambda y: 0 < level(y) < 9, lambda x: TOKENS / 8_192),
        "only-prompts-take-memory": Belief(lambda y: 28 < level(y) < 60, lambda x: TOKENS / PROMPT),
        "slots-decide": Belief(lambda y: level(y) > 150, lambda x: 256),
    },
)
