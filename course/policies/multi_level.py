"""Multi-level feedback: continuous batching for answers of which nobody knows how long they will be."""

from collections.abc import Sequence
from typing import Annotated

from course.base import settings
from course.policies.base import Order, Request, Schedule, State
from course.policies.continuous import Continuous, MaxNumBatchedTokens
from course.policies.exchange import exchanged
from course.policies.registry import Knob, MaxNumSeqs, registered
from course.policies.waiting import Waiting


@registered("multi-level")
class MultiLevelFeedback(Continuous):
    """As Continuous, but who has been given least so far goes first: a level down after each quantum, twice as long.

    A request begins at level 0 and goes down a level when it has emitted `quantum` tokens, then 3 x, 7 x, 15 x as many;
    `levels` - 1 is the last. One of a higher level gives its slot to one of a lower one that waits, one in a step, and
    computes all of it again later. So short answers pass long ones, and no guess is needed. The idea is that of
    FastServe (Wu et al., arXiv:2305.05920), which keeps the K and V of who was sent away; it also lets long prompts
    begin lower. Long answers may wait for as long as new requests come.

    Raises ValueError as Continuous does, and for a quantum or levels below 1.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        quantum: Annotated[int, Knob("Tokens of an answer at the first level; twice as many at each other.")] = 64,
        levels: Annotated[int, Knob("How many levels.")] = 6,
    ):
        self.quantum, self.levels = quantum, levels
        super().__init__(max_num_seqs, max_num_batched_tokens)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for a quantum or levels below 1."""
        super().check_settings()
        self.quantum = settings.whole("quantum", getattr(self, "quantum", None))
        self.levels = settings.whole("levels", getattr(self, "levels", None), high=64)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, quantum={self.quantum}, levels={self.levels})"

    def level(self, request: Request) -> int:
        """The level of a request: quantum x (2^n - 1) tokens were emitted before level n."""
        return min((request.emitted // self.quantum + 1).bit_length() - 1, self.levels - 1)

    def queue(self, state: State, waiting: Waiting) -> Order:
        """Requests that wait, by level: new ones and those preempted at the first, then the others."""
        return Order(waiting.sorted_by(self.level))

    def victim(self, state: State, running: Sequence[Request]) -> Request:
        """Whoever is at the highest level; of equal ones the one admitted last."""
        return max(reversed(running), key=self.level)

    def schedule(self, state: State, *, holds: bool | None = None) -> Schedule:
        """What Continuous answers, with one exchange where somebody of a lower level waits for a slot."""
        answer = super().schedule(state, holds=holds)
        if state.free_slots or not state.waiting or answer.preempt:
            return answer
        first, last = next(iter(state.waiting.sorted_by(self.level))), self.victim(state, state.running)
        if self.level(first) >= self.level(last):
            return answer
        return exchanged(state, answer, first, last, self.max_num_batched_tokens)
