"""The exercise "a window that shrinks": how an answer is tried, the known wrong turns, and an answer at work.

An answer is a function of the latest gaps between arrivals [ms], oldest first, of how many more to wait for, and of the
longest window [ms]. It returns the next window [ms].
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache

from course import policies
from course.engine.serving import serve
from course.figures.words import seconds
from course.lessons.lab05 import on_a_card
from course.lessons.lab05.served import Served
from course.policies import Schedule, State

Window = Callable[[Sequence[float], float, float], float]
WEIGHT = 0.2
"""Of the latest gap in the EMA."""
COMPANY, MOST_MS = 2, 20.0
KEPT = 20
"""Gaps that an answer is given at work: older ones would count for 1% together."""
DAY, NIGHT = 160, 4  # requests/s of answers of one token
PROBES: tuple[tuple[tuple[float, ...], float, float], ...] = (
    ((10.0, 5.0, 5.0), 2, 20.0),
    ((4.0, 4.0, 4.0, 4.0), 3, 50.0),
    ((5.0, 200.0), 2, 20.0),
    ((100.0, 90.0, 2.0), 1, 50.0),
    ((2.0, 2.0, 2.0, 2.0, 30.0), 2, 20.0),
    ((9.0,), 2, 20.0),
    ((3.0, 1.0), 4, 20.0),
    ((20.5,), 2, 20.0),
    ((10.25,), 2, 20.0),
    ((10.0,), 2, 20.0),
)


def ema(gaps: Sequence[float], weight: float = WEIGHT) -> float:
    """Exponential moving average: each gap moves it by `weight` of the way."""
    found = gaps[0]
    for gap in gaps[1:]:
        found += weight * (gap - found)
    return found


def window(gaps: Sequence[float], company: float, most: float) -> float:
    """As long as so many more take to come; nothing if that is longer than allowed."""
    wait = company * ema(gaps)
    return wait if wait <= most else 0.0


def waits_at_most(gaps: Sequence[float], company: float, most: float) -> float:
    """Cuts a long wait to the longest window."""
    return min(company * ema(gaps), most)


def shorter_than_most(gaps: Sequence[float], company: float, most: float) -> float:
    """Waits only where the company comes sooner than the longest window ends."""
    wait = company * ema(gaps)
    return wait if wait < most else 0.0


def plain_mean(gaps: Sequence[float], company: float, most: float) -> float:
    """All gaps count alike."""
    wait = company * sum(gaps) / len(gaps)
    return wait if wait <= most else 0.0


def latest_alone(gaps: Sequence[float], company: float, most: float) -> float:
    """Only the latest gap counts."""
    wait = company * gaps[-1]
    return wait if wait <= most else 0.0


def weights_swapped(gaps: Sequence[float], company: float, most: float) -> float:
    """The latest gap has what the past should have."""
    wait = company * ema(gaps, 1 - WEIGHT)
    return wait if wait <= most else 0.0


def without_company(gaps: Sequence[float], company: float, most: float) -> float:
    """One gap, whatever company is wanted."""
    wait = ema(gaps)
    return wait if wait <= most else 0.0


def grows(gaps: Sequence[float], company: float, most: float) -> float:
    """The longest window where nobody comes, and none where many do."""
    wait = company * ema(gaps)
    return 0.0 if wait <= most else most


def always_most(gaps: Sequence[float], company: float, most: float) -> float:
    """The longest window, always."""
    return most


def half(gaps: Sequence[float], company: float, most: float) -> float:
    """The twin: half as long as the company takes to come."""
    wait = company * ema(gaps) / 2
    return wait if wait <= most else 0.0


class Adaptive(policies.Window):
    """A window whose length a function of the latest gaps says, anew for each request that finds the engine idle.

    Raises ValueError for what is no number of milliseconds from 0 on.
    """

    def __init__(self, max_num_seqs: int, function: Window) -> None:
        super().__init__(max_num_seqs, 0.0)
        self._function = function
        self._gaps: deque[float] = deque(maxlen=KEPT)
        self._seen = -1
        self._latest = 0.0

    def schedule(self, state: State) -> Schedule:
        """See Window."""
        opened = False
        for request in state.waiting:
            if request.index > self._seen:
                if self._seen >= 0:
                    self._gaps.append(1e3 * (request.arrival - self._latest))
                self._seen, self._latest, opened = request.index, request.arrival, True
        if opened and len(state.waiting) == 1 and not state.decodes:
            milliseconds = self._function(list(self._gaps), COMPANY, MOST_MS) if self._gaps else 0.0
            self.window = milliseconds / 1e3
            self.check_settings()
        return super().schedule(state)

    def holds_until(self) -> None:
        """None: each arrival has to be seen."""
        return None


@cache
def at(rate: float, window_ms: float) -> Served:
    """Answers of one token behind a window that stays as it is."""
    return on_a_card.served(on_a_card.ONE, rate, window_ms)


def with_function(function: Window, rate: float) -> Served:
    """The same behind a learner's window."""
    policy = Adaptive(on_a_card.SLOTS, function)
    return Served(0.0, serve(on_a_card.load(on_a_card.ONE, rate), policy, on_a_card.step_time("H100")))


def rows(function: Window | None = None) -> list[tuple[str, ...]]:
    """By day and by night: how busy the card is, and the p95 of TTFT; with a learner's function where one is given."""
    runs = {
        "none": [at(rate, 0.0) for rate in (DAY, NIGHT)],
        f"{MOST_MS:g} ms": [at(rate, MOST_MS) for rate in (DAY, NIGHT)],
    }
    if function is not None:
        runs["yours"] = [with_function(function, rate) for rate in (DAY, NIGHT)]
    return [
        ("window", *runs),
        (f"GPU computes, {DAY}/s", *(f"{day.busy:.0%}" for day, _ in runs.values())),
        (f"TTFT p95, {DAY}/s", *(seconds(day.p95) for day, _ in runs.values())),
        (f"TTFT p95, {NIGHT}/s", *(seconds(night.p95) for _, night in runs.values())),
    ]
