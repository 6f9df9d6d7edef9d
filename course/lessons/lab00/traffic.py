"""The scenario of part 2: one H100 under requests that come evenly or in bursts, and the TTFT that people get."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.lessons.lab00.together import STEP
from course.workload import Workload, lengths

REQUESTS, PROMPT, OUTPUT = 2_000, 512, 256
SLOTS, BUDGET = 32, 2048
SHOWN = 60  # seconds of arrivals that the figure shows
PERCENTS = (50, 95, 99)


@lru_cache(maxsize=32)
def run(rate: float, arrival_cv: float, seed: int = 0) -> Run:
    """Serve 2,000 requests at `rate` requests/s, whose gaps have this coefficient of variation."""
    load = Workload.gamma(
        rate=rate, cv=arrival_cv, num_requests=REQUESTS, prompt_tokens=PROMPT,
        output_tokens=lengths.lognormal(OUTPUT, 1.0), seed=seed,
    )  # fmt: skip
    return serve(load, policies.Continuous(max_num_seqs=SLOTS, max_num_batched_tokens=BUDGET), STEP)


@dataclass(frozen=True)
class Traffic:
    """One run, and whether its times are drawn on a log axis."""

    rate: float
    run: Run
    log: bool

    @property
    def arrivals(self) -> np.ndarray:
        """Requests that come in each of the first seconds."""
        return np.histogram(self.run.arrival, np.arange(SHOWN + 1))[0]

    @property
    def mean(self) -> float:
        """Mean TTFT in seconds."""
        return float(self.run.ttft.mean())

    def percentile(self, percent: float) -> float:
        """A percentile of TTFT in seconds."""
        return float(np.percentile(self.run.ttft, percent))

    @property
    def above_mean(self) -> float:
        """Share of the requests whose TTFT is above the mean."""
        return float((self.run.ttft > self.mean).mean())


def traffic(rate: float, arrival_cv: float, log: bool = False) -> Traffic:
    """Requests at one rate, evenly or in bursts."""
    return Traffic(rate, run(rate, arrival_cv), log)


def rows(result: Traffic) -> list[tuple[str, str]]:
    """Rows for a table: the arrivals, and the TTFT in a mean and in percentiles."""
    found = [
        ("most in one second", f"{result.arrivals.max()} requests"),
        ("TTFT, mean", seconds(result.mean)),
        ("above the mean", f"{result.above_mean:.0%} of requests"),
    ]
    return found + [(f"TTFT, p{percent}", seconds(result.percentile(percent))) for percent in PERCENTS]
