"""Two readers and two prompts, few enough for a pencil: a step takes 1 ms a token, and 4 ms at least."""

from dataclasses import dataclass

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.engine.step import Step
from course.policies import Policy
from course.workload import Workload

LEAST = 4.0  # ms that a step takes at least: reading the weights
BUDGET, PROMPT, READERS = 8, 8, 2  # tokens of a step, of each prompt; requests that decode
START = 5 * LEAST  # ms: the end of a step, when both prompts come
SHARE = 0.5


@dataclass(frozen=True)
class Case:
    """One order. Times in ms."""

    run: Run

    @property
    def gap(self) -> float:
        """The longest gap of a reader."""
        return float(max(np.diff(self.run.token_times(reader)).max() for reader in range(READERS)))

    @property
    def ttft(self) -> list[float]:
        """Of the two prompts."""
        return [float(value) for value in self.run.ttft[READERS:]]


def step_ms(step: Step) -> float:
    """Milliseconds of a step."""
    return max(LEAST, float(step.decodes + step.prefill_tokens))


def case(policy: Policy) -> Case:
    """The four under a policy, in ms: readers with one token each 4 ms, then two prompts at once."""
    load = Workload(
        arrival=np.array([0, 0, START, START]),
        prompt_tokens=np.array([1, 1, PROMPT, PROMPT]),
        output_tokens=np.array([24, 24, 12, 12]),
    )
    return Case(serve(load, policy, step_ms))


def cases() -> dict[str, Case]:
    """Every order by its name."""
    return {
        "prompts first": case(policies.PrefillFirst(4, BUDGET)),
        "mixed": case(policies.Continuous(4, BUDGET)),
        "mixed, half of a step for prompts": case(policies.PrefillShare(4, BUDGET, SHARE)),
    }
