"""Prefill share: continuous batching in which prompts may take only a part of each step's token budget."""

from typing import Annotated

from course.base import settings
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION
from course.policies.base import State
from course.policies.continuous import Continuous, EngineVersion, MaxNumBatchedTokens, Watermark
from course.policies.registry import Knob, MaxNumSeqs, registered


@registered("prefill-share")
class PrefillShare(Continuous):
    """As Continuous, but prompts take at most a share of the token budget in each step, and decodes all that they need.

    prefill_share: above 0 and up to 1, of max_num_batched_tokens; int(share x budget) tokens, at least one. It is a
    share of the budget and not of the tokens that are in the step: with few decodes that would be next to nothing, and
    with none nothing at all. A step that has to preempt shares out the whole budget, in order of admission.

    Raises ValueError as Continuous does, and for a share that is none.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        prefill_share: Annotated[float, Knob("The most that prompts take of a step's token budget.")] = 0.25,
        engine_version: EngineVersion = DEFAULT_ENGINE_VERSION,
        watermark: Watermark = 0.0,
    ):
        self.prefill_share = prefill_share
        super().__init__(max_num_seqs, max_num_batched_tokens, engine_version=engine_version, watermark=watermark)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for a share that is not above 0 and up to 1."""
        super().check_settings()
        self.prefill_share = settings.real("prefill_share", getattr(self, "prefill_share", None), low=0, high=1)
        if not self.prefill_share:
            raise ValueError("prefill_share=0 would never compute a prompt: give a share above 0, such as 0.25")

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, prefill_share={self.prefill_share:g})"

    def room(self, state: State) -> int:
        """Tokens of the coming step that prompts may take: their share, or what the decodes leave if that is less."""
        return min(super().room(state), max(1, int(self.prefill_share * self.max_num_batched_tokens)))
