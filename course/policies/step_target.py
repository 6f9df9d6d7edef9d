"""A target for the step: continuous batching that lets prompts take what keeps each step short."""

from copy import copy
from typing import Any

from course.base import settings
from course.policies.base import Policy, State, copied
from course.policies.continuous import Continuous

GRAIN = 64  # tokens: prompts get a multiple of it


class StepTarget(Continuous):
    """As Continuous, but prompts get the most tokens with which the step time says that the step keeps the target.

        policies.StepTarget(256, 8_192, step_time=recorded("h100-llama3-8b"), target=0.020)

    step_time: a model with `seconds`, such as those of `course.steptime`. target: seconds of a step while anybody
    decodes; alone, prompts take the whole budget. Tokens are a multiple of GRAIN, and at least GRAIN, so that prompts
    go on where decodes alone miss the target. The step time is asked for one chunk, of the prompt under way if there is
    one. others: settings of Continuous, without scheduler_reserve_full_isl. vLLM has no such setting; the nearest is
    a fixed max_num_batched_tokens.

    Raises ValueError as Continuous does, for a step time without `seconds`, and for a target that is not above 0.
    """

    def __init__(self, max_num_seqs: int, max_num_batched_tokens: int, *, step_time: Any, target: float, **others: Any):
        self.step_time, self.target = step_time, target
        super().__init__(max_num_seqs, max_num_batched_tokens, **others)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for a step time or a target that cannot be."""
        super().check_settings()
        if not callable(getattr(self.step_time, "seconds", None)):
            raise ValueError(
                f"step_time must be a step-time model with `seconds`, such as steptime.Roofline, not "
                f"{settings.quote(self.step_time)}"
            )
        self.target = settings.real("target", self.target, low=1e-6, high=settings.MAX_SECONDS)
        if not self.scheduler_reserve_full_isl:
            raise ValueError("a step target needs scheduler_reserve_full_isl=True: a chunk's size changes all the time")

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, target={self.target:g})"

    def fresh(self) -> Policy:
        """One like this that has served nothing yet, with the same step time."""
        made, model = copy(self), self.step_time
        del made.step_time
        made = copied(made)
        made.step_time = model
        return made

    def room(self, state: State) -> int:
        """Tokens of the coming step that prompts may take; asked for those that fit a multiple of GRAIN."""
        most = super().room(state)
        if not state.decodes or most <= GRAIN:
            return most
        cached = state.prefilling[0].computed if state.prefilling else 0
        low, high = 1, most // GRAIN  # the target holds with low, or low is 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._seconds(state, middle * GRAIN, cached) <= self.target:
                low = middle
            else:
                high = middle - 1
        return low * GRAIN

    def _seconds(self, state: State, tokens: int, cached: int) -> float:
        pairs = tokens * cached + tokens * (tokens + 1) // 2
        seconds: float = self.step_time.seconds(state.decodes, state.decode_context, tokens, pairs, tokens + cached)
        return seconds
