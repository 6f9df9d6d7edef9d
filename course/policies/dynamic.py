"""Dynamic batching, as in Triton: go when the batch is full or when the oldest request has waited long enough."""

from typing import Annotated

from course.base import settings
from course.policies.base import DECODES, Policy, Schedule, State
from course.policies.registry import Knob, MaxNumSeqs, registered
from course.policies.static import padded_prefill


@registered("dynamic")
class Dynamic(Policy):
    """Request-level batching with a time limit.

    Starts when `max_num_seqs` requests wait, or when the oldest of them has waited `max_queue_delay` seconds. Runs,
    pads and answers like Static. Raises ValueError for max_num_seqs below 1 or a delay outside 0 to 1e10.
    """

    padded = True

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_queue_delay: Annotated[float, Knob("How long the oldest waits for a full batch.", 0.1, seconds=True)],
    ):
        self.max_num_seqs, self.max_queue_delay = max_num_seqs, max_queue_delay
        self.check_settings()

    def check_settings(self) -> None:
        """Raises ValueError for a setting that cannot be."""
        self.max_num_seqs = settings.whole("max_num_seqs", getattr(self, "max_num_seqs", None))
        delay = getattr(self, "max_queue_delay", None)
        self.max_queue_delay = settings.real("max_queue_delay", delay, low=0, high=settings.MAX_SECONDS)

    def __repr__(self) -> str:
        return f"Dynamic(max_num_seqs={self.max_num_seqs}, max_queue_delay={settings.quote(self.max_queue_delay)})"

    def schedule(self, state: State) -> Schedule:
        """Wait for a full batch or the deadline, then run it to its end."""
        if state.decodes:
            return DECODES
        if not state.waiting:
            return Schedule()
        deadline = state.waiting[0].arrival + self.max_queue_delay
        if len(state.waiting) < self.max_num_seqs and state.now < deadline:
            return Schedule(until=deadline)
        return padded_prefill(state.waiting[: self.max_num_seqs])
