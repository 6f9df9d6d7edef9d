"""Admission windows in front of continuous batching: wait a little for company before a step."""

from typing import Annotated

from course.base import settings
from course.policies.base import Policy, Schedule, State
from course.policies.registry import Knob, MaxNumSeqs, registered

TOP_UP = 0.25  # of a window: what NoteWindow waits before every step of a busy engine


@registered("window")
class Window(Policy):
    """A window that opens when a request arrives at an idle engine and closes early when the batch is full.

    Requests that waited already, for a slot, wait no longer; and between steps none waits at all.
    window: seconds. Raises ValueError for max_num_seqs below 1 or a window outside 0 to 1e10.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        window: Annotated[float, Knob("How long an idle engine waits for company.", 0.006, seconds=True)],
    ):
        self.max_num_seqs, self.window = max_num_seqs, window
        self.check_settings()

    def check_settings(self) -> None:
        """Raises ValueError for a setting that cannot be."""
        self.max_num_seqs = settings.whole("max_num_seqs", getattr(self, "max_num_seqs", None))
        window = getattr(self, "window", None)
        self.window = settings.real("window", window, low=0, high=settings.MAX_SECONDS)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_num_seqs={self.max_num_seqs}, window={settings.quote(self.window)})"

    def opens_at(self, state: State) -> float:
        """When the engine runs its next step [s]; now if it is busy, or if a request has waited for it already."""
        if state.decodes or not state.waiting or len(state.waiting) >= self.max_num_seqs:
            return state.now
        first, last_end = state.waiting[0].arrival, state.last_step_end  # 0: nothing has run yet
        return first + self.window if first > last_end or not last_end else state.now

    def schedule(self, state: State) -> Schedule:
        """Wait for the window, then admit all that are here; between steps none waits."""
        opens = self.opens_at(state)
        if state.now < opens:
            return Schedule(until=opens)
        newcomers = state.waiting[: state.free_slots]
        return Schedule({request: request.remaining for request in newcomers}, decodes=True, until=self.holds_until())

    def holds_until(self) -> float | None:
        """How long an answer holds, once there is one."""
        return float("inf")


@registered("note-window")
class NoteWindow(Window):
    """The window of the notes: waits before every step, full or not.

    An idle engine waits a whole window after the next arrival, and a busy one a quarter of it, whatever waits.
    """

    def opens_at(self, state: State) -> float:
        """When the engine runs its next step [s]."""
        if state.decodes:
            return state.last_step_end + TOP_UP * self.window
        first = state.waiting[0].arrival if state.waiting else state.now
        return max(state.last_step_end, first) + self.window

    def holds_until(self) -> None:
        """How long an answer holds, once there is one."""
        return None
