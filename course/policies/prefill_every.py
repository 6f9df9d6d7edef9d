"""Prefill every k-th step: continuous batching in which prompts run in some of the steps only."""

from typing import Annotated

from course.base import settings
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION
from course.policies.base import Schedule, State
from course.policies.continuous import Continuous, EngineVersion, MaxNumBatchedTokens, Watermark
from course.policies.registry import Knob, MaxNumSeqs, registered


@registered("prefill-every")
class PrefillEvery(Continuous):
    """As Continuous, but after a step with prompts come k - 1 of decodes alone before the next prompts.

    every: k, at least 1; with 1 it is Continuous. While nobody decodes, prompts do not wait, and a newcomer that comes
    k steps or more after the last prompt goes at once. A step that has to preempt does not wait its turn.

    Raises ValueError as Continuous does, and for a k that is no whole number above 0.
    """

    decode_steps = 0
    """Steps of decodes alone that are still to come before prompts may run."""

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        every: Annotated[int, Knob("Prompts run in every so many steps.")] = 4,
        engine_version: EngineVersion = DEFAULT_ENGINE_VERSION,
        watermark: Watermark = 0.0,
    ):
        self.every = every
        super().__init__(max_num_seqs, max_num_batched_tokens, engine_version=engine_version, watermark=watermark)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for an `every` that is no whole number above 0."""
        super().check_settings()
        self.every = settings.whole("every", getattr(self, "every", None))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, every={self.every})"

    def schedule(self, state: State, *, holds: bool | None = True) -> Schedule:
        """Decodes alone, or what Continuous answers; asked before every step until prompts may run again."""
        if self.decode_steps and state.decodes and state.spare_blocks >= 0 and self.room(state) >= 0:
            self.decode_steps -= 1
            return Schedule(decodes=True)
        answer = super().schedule(state, holds=holds)
        if self.every > 1 and answer.tokens and not answer.preempt:  # newcomers, or prompts under way
            self.decode_steps = self.every - 1
            return Schedule(answer.tokens, decodes=answer.decodes)
        return answer
