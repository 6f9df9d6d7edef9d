"""Load dependent: a token budget that grows with the load, as an experiment of the notes has it."""

from course.base import settings
from course.policies.base import Schedule, State
from course.policies.continuous import Continuous
from course.policies.registry import MaxNumSeqs, registered

LEVELS = ((0.3, 512), (0.7, 2_048), (float("inf"), 4_096))
"""Below this load, so many tokens in a step."""
MOST_SLOTS = 1_706  # 0.3 of more would not fit 512 tokens, one each


@registered("load-dependent")
class LoadDependent(Continuous):
    """As Continuous, with 512 tokens in a step at low load, 2,048 at medium and 4,096 at high load.

    The load is the share of the slots that are taken. (At low load the note turns chunked prefill off as well. With 512
    tokens in a step no longer prompt could then ever run, so chunks stay on here.)

    Raises ValueError as Continuous does, and for more than MOST_SLOTS slots.
    """

    def __init__(self, max_num_seqs: MaxNumSeqs):
        super().__init__(max_num_seqs, LEVELS[-1][1])

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for more slots than its smallest budget serves."""
        settings.whole("max_num_seqs", self.max_num_seqs, high=MOST_SLOTS)
        super().check_settings()

    def schedule(self, state: State, *, holds: bool | None = None) -> Schedule:
        """What Continuous answers with the budget of this load."""
        load = len(state.running) / self.max_num_seqs
        self.max_num_batched_tokens = next(tokens for below, tokens in LEVELS if load < below)
        return super().schedule(state, holds=holds)
