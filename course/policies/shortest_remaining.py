"""Shortest remaining first (SRPT): continuous batching in which a short answer takes the slot of a long one."""

from collections.abc import Sequence

from course.policies.base import Order, Request, Schedule, State
from course.policies.continuous import Continuous
from course.policies.exchange import exchanged
from course.policies.registry import registered
from course.policies.waiting import Waiting


def left(request: Request) -> float:
    """Tokens that its answer still lacks by its guess, at least 1; infinite without a guess."""
    return float("inf") if request.guess is None else max(1.0, request.guess - request.emitted)


@registered("shortest-remaining")
class ShortestRemaining(Continuous):
    """As Continuous, but who has least left of the answer is served first, and takes the slot of who has most left.

    What is left is the guess (`Workload.with_guesses`) less what was emitted; without a guess it is infinite. If all
    slots are taken and one that waits has less left than one that runs, the one with most left is preempted, one in a
    step, and computes all of it again later: that is what the order costs on a GPU, and not on a CPU. Long answers may
    wait for as long as shorter ones come. Raises ValueError as Continuous does.

    Schrage, *A Proof of the Optimality of the Shortest Remaining Processing Time Discipline*, 1968: the least mean time
    in system, where an exchange costs nothing.
    """

    def queue(self, state: State, waiting: Waiting) -> Order:
        """Requests that wait, least left first: while they wait nothing is emitted, so time does not change it."""
        return Order(waiting.sorted_by(left))

    def victim(self, state: State, running: Sequence[Request]) -> Request:
        """Who has most left; of equal ones the one admitted last."""
        return max(reversed(running), key=left)

    def schedule(self, state: State, *, holds: bool | None = None) -> Schedule:
        """What Continuous answers, with one exchange where it serves somebody sooner."""
        answer = super().schedule(state, holds=holds)
        if state.free_slots or not state.waiting or answer.preempt:
            return answer
        first, last = next(iter(state.waiting.sorted_by(left))), self.victim(state, state.running)
        if left(first) >= left(last):
            return answer
        return exchanged(state, answer, first, last, self.max_num_batched_tokens)
