"""A policy made of one function, to try an idea in three lines."""

import math
from collections.abc import Callable, Mapping

from course.policies.base import Policy, Request, Schedule, State


class FromFunction(Policy):
    """Asks `decide(state)` before every step: {request: tokens it computes}, or a Schedule.

        def one_at_a_time(state):
            return {request: request.remaining for request in (state.running or state.waiting)[:1]}

        serve(load, policies.FromFunction(one_at_a_time, max_num_seqs=4), step_time)

    max_num_seqs: slots. max_num_batched_tokens: the most tokens of a step, without a limit by default.
    """

    def __init__(
        self,
        decide: Callable[[State], Mapping[Request, int] | Schedule],
        max_num_seqs: int,
        max_num_batched_tokens: float = math.inf,
    ):
        self.decide = decide
        self.max_num_seqs, self.max_num_batched_tokens = max_num_seqs, max_num_batched_tokens

    def __repr__(self) -> str:
        name = getattr(self.decide, "__name__", type(self.decide).__name__)
        return f"FromFunction({name}, max_num_seqs={self.max_num_seqs})"

    def schedule(self, state: State) -> Schedule:
        """What the function decides."""
        answer = self.decide(state)
        return answer if isinstance(answer, Schedule) else Schedule(tokens=answer)
