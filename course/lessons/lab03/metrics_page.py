"""What the decision is about: two scrapes of an engine's metrics page, and what `vllm bench serve` is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

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


@lru_cache(maxsize=1)
def scrapes() -> tuple[Scrape, Scrape]:
    """The page at both moments."""
    run = serve(one_engine.requests(RATE, num_requests=REQUESTS), one_engine.engine(), one_engine.STEP)
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
    before, after = scrapes()
    return in_flight(after.count - before.count, after.e2e_sum - before.e2e_sum, float(np.ptp(SCRAPES)))


def choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What of a decision {flag: value} is compared: the flag, and its value where the flag is the right one.

    Raises NotImplementedError where nothing is filled in, ValueError for more than one flag.
    """
    chosen = {flag: value for flag, value in answer.items() if value is not None}
    if not chosen:
        raise NotImplementedError("nothing is chosen yet")
    if len(chosen) > 1:
        raise ValueError("choose one flag, and give one value")
    ((flag, value),) = chosen.items()
    name = "--" + str(flag).strip().lstrip("-").replace("_", "-")
    return {"flag": name, "value": value if name == "--max-concurrency" else 0}
