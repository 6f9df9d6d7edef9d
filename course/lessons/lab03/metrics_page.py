"""What the decision is about: two scrapes of an engine's metrics page, and what `vllm bench serve` is told."""

from dataclasses import dataclass

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab03 import one_engine

RATE, REQUESTS = 14, 20_000
SCRAPES = (630, 930)  # seconds of the run


@dataclass(frozen=True)
class Scrape:
    """What stands on the page: two gauges at this moment, and a counter and a sum since the start."""

    running: int
    waiting: int
    count: int
    e2e_sum: float


PAGE = (Scrape(23, 0, 8_937, 16_900.986806716555), Scrape(32, 12, 13_183, 25_263.36416549347))
"""What `scrapes` finds, a tenth of a second's work that no start of the lab waits for; a test compares the two."""


def scrapes(run: Run | None = None) -> tuple[Scrape, Scrape]:
    """The page at both moments, from the run of the page or another one."""
    run = run or serve(one_engine.requests(RATE, num_requests=REQUESTS), one_engine.engine(), one_engine.STEP)
    started = run.arrival + run.queue_wait

    def at(moment: float) -> Scrape:
        done = run.response <= moment
        here = (run.arrival <= moment) & ~done
        waiting = int((here & (started > moment)).sum())
        return Scrape(int(here.sum()) - waiting, waiting, int(done.sum()), float(run.e2e[done].sum()))

    before, after = (at(float(moment)) for moment in SCRAPES)
    return before, after


def in_flight(count: float, e2e_sum: float, seconds: float) -> float:
    """Mean number in the system: λ = count / seconds, W = e2e_sum / count, and their product."""
    return (count / seconds) * (e2e_sum / count)


def from_page() -> float:
    """What the two scrapes say."""
    return in_flight(*growth())


def growth() -> tuple[int, float, float]:
    """By how much count and sum of the page grow, and the seconds between its scrapes."""
    before, after = PAGE
    return after.count - before.count, after.e2e_sum - before.e2e_sum, float(np.ptp(SCRAPES))
