"""Lab 15's exercises: a window from a promise, who joins a batch, who goes last; known wrong turns; a learner's order.

A `joins` takes the numbers of those that wait in two queues, oldest first, how many run and the largest batch, and
returns who joins before the next step. A `last` takes [(due [s], prompt tokens)] of those who wait, the time, and
prompt tokens/s, and returns their places in the order of admission.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from course import policies
from course.policies import Request, State
from course.policies.waiting import Waiting

LEAST, LONGEST = 1.0, 8.0  # ms: the bounds of the note's window for interactive requests
Own = Callable[[list[tuple[float, int]], float, float], list[int]]


class Case(NamedTuple):
    """Milliseconds that are promised, t0 and c of a step of so many requests, and the margin."""

    slo: float
    t0: float
    c: float
    batch: int
    margin: float


ASKED, TWIN = Case(50, 10, 0.25, 96, 10), Case(80, 10, 0.25, 96, 10)


def step(case: Case) -> float:
    """t0 + c b [ms]."""
    return case.t0 + case.c * case.batch


def window(case: Case) -> float:
    """SLO less step less margin, within the bounds [ms]."""
    return min(LONGEST, max(LEAST, case.slo - step(case) - case.margin))


JOIN_PROBES: tuple[tuple[list[int], list[int], int, int], ...] = (
    ([3, 6], [1, 2, 4, 5], 1, 4),
    ([], [7, 8, 9], 2, 4),
    ([1, 2, 3], [7], 2, 4),
    ([1], [], 0, 4),
    ([1, 2], [7], 4, 4),
    ([], [], 1, 4),
    ([1], [7, 8, 9, 10], 0, 3),
)


def joins(interactive: list[int], bulk: list[int], running: int, most: int) -> list[int]:
    """Interactive requests, then bulk ones, as far as there is room."""
    return (interactive + bulk)[: most - running]


def one_queue(interactive: list[int], bulk: list[int], running: int, most: int) -> list[int]:
    """The note's choice, made before each step: a queue, and nobody of the other."""
    return (interactive or bulk)[: most - running]


def when_empty(interactive: list[int], bulk: list[int], running: int, most: int) -> list[int]:
    """The note's loop: nobody of the other queue joins before the batch is empty."""
    return (interactive + bulk)[:most] if not running else []


def no_room(interactive: list[int], bulk: list[int], running: int, most: int) -> list[int]:
    """Those who run take no slot."""
    return (interactive + bulk)[:most]


def bulk_first(interactive: list[int], bulk: list[int], running: int, most: int) -> list[int]:
    """The other way round; the solution of the twin, and a mistake of the exercise."""
    return (bulk + interactive)[: most - running]


def oldest_first(interactive: list[int], bulk: list[int], running: int, most: int) -> list[int]:
    """One queue, in which nobody has a right of way."""
    return sorted(interactive + bulk)[: most - running]


def interactive_only(interactive: list[int], bulk: list[int], running: int, most: int) -> list[int]:
    """Nobody of the bulk queue, whatever is free."""
    return interactive[: most - running]


def all_of_them(interactive: list[int], bulk: list[int], running: int, most: int) -> list[int]:
    """No largest batch."""
    return interactive + bulk


Waits = list[tuple[float, int]]
LAST_PROBES: tuple[tuple[Waits, float, float], ...] = (
    ([(9, 10), (4, 10), (20, 10), (12, 40)], 4.3, 10),
    ([(8, 10), (7, 40), (6, 10)], 1.3, 10),
    ([(3, 10), (2, 10), (30, 10)], 5.3, 10),
    ([(5, 20), (9, 80)], 0.3, 20),
    ([(9, 10)], 9.3, 10),
    ([], 0.3, 10),
    ([(6, 30), (5, 10), (7, 10), (12, 100)], 2.3, 10),
)


def starts(waiting: Waits, pace: float) -> list[float]:
    """When each has to start [s]."""
    return [due - prompt / pace for due, prompt in waiting]


def last(waiting: Waits, now: float, pace: float) -> list[int]:
    """Who has to start soonest first; whose time to start has passed last."""
    start = starts(waiting, pace)
    return sorted(range(len(waiting)), key=lambda place: (start[place] < now, start[place]))


def by_start(waiting: Waits, now: float, pace: float) -> list[int]:
    """The hopeless stay where they are."""
    start = starts(waiting, pace)
    return sorted(range(len(waiting)), key=lambda place: start[place])


def by_deadline(waiting: Waits, now: float, pace: float) -> list[int]:
    """Earliest deadline first."""
    return sorted(range(len(waiting)), key=lambda place: waiting[place][0])


def due_is_start(waiting: Waits, now: float, pace: float) -> list[int]:
    """A prompt takes no time."""
    return sorted(range(len(waiting)), key=lambda place: (waiting[place][0] < now, waiting[place][0]))


def multiplied(waiting: Waits, now: float, pace: float) -> list[int]:
    """Tokens times tokens a second, as if that were a time."""
    start = [due - prompt * pace for due, prompt in waiting]
    return sorted(range(len(waiting)), key=lambda place: (start[place] < now, start[place]))


def dropped(waiting: Waits, now: float, pace: float) -> list[int]:
    """Nobody serves the hopeless."""
    start = starts(waiting, pace)
    return [place for place in last(waiting, now, pace) if start[place] >= now]


def in_order(waiting: Waits, now: float, pace: float) -> list[int]:
    """First come, first served among those who can make it; the twin's solution, and a mistake of the exercise."""
    start = starts(waiting, pace)
    return sorted(range(len(waiting)), key=lambda place: (start[place] < now, place))


class Yours(policies.Continuous):
    """Continuous batching in the order that a function says."""

    def __init__(self, function: Own, max_num_seqs: int, max_num_batched_tokens: int, pace: float):
        self.function, self.pace = function, pace
        super().__init__(max_num_seqs, max_num_batched_tokens)

    def queue(self, state: State, waiting: Waiting) -> Iterator[Request]:
        """Those that wait in the function's order. ValueError where it names a place that there is not."""
        line = sorted(waiting, key=lambda request: request.index)
        places = self.function([(request.due, request.prompt_tokens) for request in line], state.now, self.pace)
        if not isinstance(places, list) or sorted(places) != list(range(len(line))):
            raise ValueError(f"your function must return each of the {len(line)} places once, not {places!r}")
        return iter([line[place] for place in places])
