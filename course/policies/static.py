"""Static batching: wait for a full batch, run it until its longest request ends, then answer all."""

from collections.abc import Sequence

from course.base import settings
from course.policies.base import DECODES, Policy, Request, Schedule, State
from course.policies.registry import MaxNumSeqs, registered


@registered("static")
class Static(Policy):
    """Request-level batching with a fixed batch: starts when `max_num_seqs` requests wait, or no other will come.

    A finished request keeps its slot as padding, prompts are padded to the longest, and the answers leave together.
    Raises ValueError for max_num_seqs below 1.
    """

    padded = True

    def __init__(self, max_num_seqs: MaxNumSeqs):
        self.max_num_seqs = max_num_seqs
        self.check_settings()

    def check_settings(self) -> None:
        """Raises ValueError for a setting that cannot be."""
        self.max_num_seqs = settings.whole("max_num_seqs", getattr(self, "max_num_seqs", None))

    def __repr__(self) -> str:
        return f"Static(max_num_seqs={self.max_num_seqs})"

    def schedule(self, state: State) -> Schedule:
        """Wait for a full batch, then run it to its end."""
        if state.decodes:
            return DECODES
        if len(state.waiting) < self.max_num_seqs and not state.no_more_arrivals:
            return Schedule()
        return padded_prefill(state.waiting[: self.max_num_seqs])


def padded_prefill(batch: Sequence[Request]) -> Schedule:
    """The first step of a batch: every prompt, padded to the longest."""
    longest = max((request.prompt_tokens for request in batch), default=0)
    return Schedule(tokens=dict.fromkeys(batch, longest))
