"""Four requests, few enough for a pencil: two chats that stream, one long prompt, and a new chat just behind it."""

import numpy as np

from course import policies
from course.engine.serving import serve
from course.engine.step import Step
from course.lessons.lab07.long_prompt import Moment
from course.workload import Workload

PROMPT, NEW_PROMPT = 12, 2  # tokens of the long prompt and of the new chat's
LATER = 1.0  # ms after the long prompt, the new chat comes
LEAST = 4.0  # ms that a step takes at least: reading the weights
SETTINGS = {"whole prompt": (64, 0), "budget of 6": (6, 0), "budget of 6, cap of 2": (6, 2)}
"""Token budget and cap of each case."""
CHATS = 2


def step_ms(step: Step) -> float:
    """Milliseconds of a step: one for each token, but at least the reading of the weights."""
    return max(LEAST, float(step.decodes + step.prefill_tokens))


def case(budget: int, cap: int) -> Moment:
    """The four with this budget and cap, in ms; the chats have streamed for a while, one token each 4 ms."""
    start = 5 * LEAST  # the end of a step
    load = Workload(
        arrival=np.array([0, 0, start, start + LATER]),
        prompt_tokens=np.array([1, 1, PROMPT, NEW_PROMPT]),
        output_tokens=np.array([24, 24, 12, 12]),
    )
    run = serve(load, policies.Continuous(4, budget, long_prefill_token_threshold=cap), step_ms)
    return Moment(run, start, CHATS)


def cases() -> dict[str, Moment]:
    """Every setting by its name."""
    return {name: case(*setting) for name, setting in SETTINGS.items()}
