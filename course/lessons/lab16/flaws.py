"""The decision of lab 16: which flag kept a test from its plan, and which value would not."""

from math import ceil, log2

from course.exercises.decision import one_flag
from course.exercises.spec import Exercise, Mistake
from course.lessons.lab16 import three_files

FLAG = "--max-concurrency"
_peak = three_files.contents("peak")
RATE, E2E, LIMIT = _peak["request_rate"], _peak["mean_e2el_ms"] / 1e3, _peak["max_concurrency"]
"""Of the result in the notebook: requests/s asked for, mean E2E [s], and the limit in flight."""
RATE_TWIN, E2E_TWIN = 20, 2.5


def enough(rate: float, e2e: float) -> int:
    """The smallest power of two that is at least rate x E2E, the mean number in flight by Little's law."""
    return 2 ** ceil(log2(rate * e2e))


choice = one_flag(FLAG)


def decision(rate: float, e2e: float, *, question: str = "", twin: Exercise | None = None) -> Exercise:
    """The exercise for a result with this rate asked for and this mean E2E [s]."""
    right = enough(rate, e2e)
    hints = {
        16: "That is even less than the test had, and requests waited in the client.",
        32: "That is what the test had. Multiply rate and E2E: how many are in flight?",
        64: "Multiply rate and E2E: that many are in flight on average, and the limit has to be higher.",
        128: "It is enough, and so is a smaller power of two.",
        256: "It is enough, and so is a smaller power of two.",
    }
    return Exercise(
        id="decision",
        title="The decision",
        solution={FLAG: right},
        evaluate=choice,
        mistakes=(
            Mistake(
                {"--request-rate": 16},
                "A lower rate would be reached, but the claim is about the higher one. What held the requests back?",
            ),
            Mistake(
                {"--num-prompts": 4_096},
                "More requests make the test longer, and its last request later. What held the requests back?",
            ),
            *(Mistake({FLAG: value}, hint) for value, hint in hints.items() if value != right),
        ),
        hint="Compare the rate that was asked for with the one that was reached, and look for a limit.",
        plain="Requests wait in the client as long as the limit in flight is reached. By Little's law rate x E2E are "
        "in flight on average: take the next power of two above that.",
        question=question,
        twin=twin,
    )


DECISION = decision(
    RATE,
    E2E,
    twin=decision(
        RATE_TWIN,
        E2E_TWIN,
        question="Another test asks for 20 requests/s and has a mean E2E of 2.5 s. Choose again.",
    ),
)
