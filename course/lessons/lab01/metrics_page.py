"""What the decision is about: five minutes on an engine's metrics page, beside what a client measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course.exercises.decision import one_flag
from course.lessons.lab01 import chat

SCRAPES = (60.0, 360.0)  # seconds of the run
RATE = chat.RATE
CHOICES_US = (0, 5_000, 10_000, 20_000, 50_000)  # max_queue_delay_microseconds to choose from
GOAL = 0.125  # seconds, mean TTFT of users
TWIN = {"rate": 2.0, "inside": 0.020, "outside": 0.040}  # requests/s and seconds: another engine and its users
GOAL_TWIN = 0.072
FLAG = "--max-queue-delay-microseconds"


@dataclass(frozen=True)
class Scrape:
    """Counters since the start: requests with a first token, and sums of seconds."""

    count: int
    ttft_sum: float
    queue_sum: float
    prefill_sum: float


@lru_cache(maxsize=1)
def scrapes() -> tuple[Scrape, Scrape]:
    """The page at both moments."""
    run = chat.chat(num_requests=5_000).run

    def at(moment: float) -> Scrape:
        there = run.first_computed <= moment
        prefill = (run.first_computed - run.admitted)[there]
        sums = (run.ttft[there].sum(), run.queue_wait[there].sum(), prefill.sum())
        return Scrape(int(there.sum()), *map(float, sums))

    before, after = map(at, SCRAPES)
    return before, after


def rate() -> float:
    """Requests/s between the scrapes."""
    before, after = scrapes()
    return (after.count - before.count) / float(np.ptp(SCRAPES))


def engine() -> float:
    """Mean TTFT in the engine between the scrapes [s]."""
    before, after = scrapes()
    return (after.ttft_sum - before.ttft_sum) / (after.count - before.count)


def users(delay_us: float, *, rate: float, inside: float, outside: float = chat.OUTSIDE_MS / 1e3) -> float:
    """Mean TTFT of users with this delay [s]: the time outside, the window, and inside the engine."""
    return outside + chat.mean_window_wait(delay_us / 1e6, rate) + inside


def largest(goal: float, **where: float) -> int:
    """The largest delay to choose from [microseconds] with which users wait at most `goal` seconds on average."""
    return max(delay for delay in CHOICES_US if users(delay, **where) <= goal)


choice = one_flag(FLAG)
