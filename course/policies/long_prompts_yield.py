"""Long prompts yield: continuous batching in which a long prompt under way gives way to a deep queue of short ones."""

from typing import Annotated

from course.base import settings
from course.policies.base import Order, Request, Schedule, State
from course.policies.continuous import Continuous, MaxNumBatchedTokens
from course.policies.registry import Knob, MaxNumSeqs, registered
from course.policies.waiting import Waiting


@registered("long-prompts-yield")
class LongPromptsYield(Continuous):
    """As Continuous, but while many short prompts wait, long ones that are not complete are sent back behind them.

    depth: once more short prompts than this wait, long prompts under way are preempted, with all that they have
    computed, and none is admitted before the short ones until none of these waits. long_prompt: tokens from which a
    prompt is long. One whose answer has begun goes on. Long prompts may wait for as long as short ones do.

    Raises ValueError as Continuous does, and for a depth below 0 or a long_prompt below 1.
    """

    yielding = False
    """Whether the queue was deep, and short prompts still wait."""

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        depth: Annotated[int, Knob("Short prompts that may wait before long ones yield.")] = 8,
        long_prompt: Annotated[int, Knob("Tokens from which a prompt is long.")] = 4_096,
    ):
        self.depth, self.long_prompt = depth, long_prompt
        super().__init__(max_num_seqs, max_num_batched_tokens)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for a depth below 0 or a long_prompt below 1."""
        super().check_settings()
        self.depth = settings.whole("depth", getattr(self, "depth", None), low=0)
        self.long_prompt = settings.whole("long_prompt", getattr(self, "long_prompt", None))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, depth={self.depth}, long_prompt={self.long_prompt})"

    def long(self, request: Request) -> bool:
        """Whether its prompt is long, and its answer has not begun."""
        return request.prompt_tokens >= self.long_prompt and not request.emitted

    def queue(self, state: State, waiting: Waiting) -> Order | list[Request]:
        """Requests that wait, in order, or the long ones last: right for this step only."""
        return list(waiting.sorted_by(self.long) if self.yielding else waiting)

    def schedule(self, state: State, *, holds: bool | None = None) -> Schedule:
        """What Continuous answers, or an answer without the long prompts that are under way."""
        short = sum(not self.long(request) for request in state.waiting)
        self.yielding = short > (0 if self.yielding else self.depth)
        if not self.yielding:
            return super().schedule(state, holds=holds)
        answer = self._without_long(state) or super().schedule(state, holds=holds)
        return Schedule(answer.tokens, answer.preempt, answer.decodes)  # asked again before the next step

    def _without_long(self, state: State) -> Schedule | None:
        """None where no long prompt is under way, or nobody could take its place."""
        victims = [request for request in state.prefilling if self.long(request)]
        if not victims or state.spare_blocks < 0 or self.room(state) <= 0:
            return None
        plan, tokens, left, cap = state.plan(), {}, self.room(state), self.cap(state)
        for victim in victims:
            plan.release(victim)
        for request in state.prefilling:
            chunk = min(request.remaining, left, cap or left)
            if request not in victims and chunk and plan.take(request, chunk, if_fit=chunk):
                tokens[request] = chunk
                left -= chunk
        if left and state.free_slots:
            self.admit(state, plan, tokens, left, cap)
        if not tokens and not state.decodes:  # a slot of theirs is free in this step already
            first = next(iter(self.queue(state, state.waiting)))
            chunk = min(plan.remaining(first), left, cap or left)
            if not plan.take(first, chunk, if_fit=chunk):
                return None
            tokens[first] = chunk
        return Schedule(tokens, preempt=victims, decodes=True)
