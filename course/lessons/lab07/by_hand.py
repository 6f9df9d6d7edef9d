"""Four requests, few enough for a pencil: two chats that stream, one long prompt, and a new chat just behind it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.engine.step import Step
from course.workload import Workload

PROMPT, NEW_PROMPT = 12, 2  # tokens of the long prompt and of the new chat's
LATER = 1.0  # ms after the long prompt, the new chat comes
LEAST = 4.0  # ms that a step takes at least: reading the weights
SETTINGS = {"whole prompt": (64, 0), "budget of 6": (6, 0), "budget of 6, cap of 2": (6, 2)}
"""Token budget and cap of each case."""
CHATS, LONG, NEW = (0, 1), 2, 3


def step_ms(step: Step) -> float:
    """Milliseconds of a step: one for each token, but at least the reading of the weights."""
    return max(LEAST, float(step.decodes + step.prefill_tokens))


@dataclass(frozen=True)
class Case:
    """One setting; times in ms since the long prompt arrived."""

    run: Run
    start: float

    @cached_property
    def steps(self) -> np.ndarray:
        """Start and end of each step with a chunk of the long prompt, shape (steps, 2)."""
        steps, run = self.run.steps, self.run
        here = (steps.start >= run.admitted[LONG]) & (steps.end <= run.first_computed[LONG])
        return np.column_stack((steps.start, steps.end))[here] - self.start

    def tokens(self, request: int) -> np.ndarray:
        """When a request gets its tokens."""
        return self.run.token_times(request) - self.start

    @property
    def longest_gap(self) -> float:
        """The longest time without a token for a chat that streams."""
        return float(max(np.diff(self.tokens(chat)).max() for chat in CHATS))

    @property
    def new_ttft(self) -> float:
        """The wait of the new chat for its first token."""
        return float(self.run.ttft[NEW])

    @property
    def long_ttft(self) -> float:
        """The wait of the long prompt for its first token."""
        return float(self.run.ttft[LONG])


def case(budget: int, cap: int) -> Case:
    """The four requests with this budget and cap; the chats have streamed for a while, one token each 4 ms."""
    start = 5 * LEAST  # the end of a step
    load = Workload(
        arrival=np.array([0, 0, start, start + LATER]),
        prompt_tokens=np.array([1, 1, PROMPT, NEW_PROMPT]),
        output_tokens=np.array([24, 24, 12, 12]),
    )
    return Case(serve(load, policies.Continuous(4, budget, long_prefill_token_threshold=cap), step_ms), start)


def cases() -> dict[str, Case]:
    """Every setting by its name."""
    return {name: case(*setting) for name, setting in SETTINGS.items()}
