"""A tenant that was silent for a while comes back as busy as the other: what the lift of the counters is for."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab17.tenants import ANSWER, BUDGET, NOISY_PROMPT, POOL, STEP
from course.workload import Workload, lengths

SILENT, UNTIL, RATE, SLOTS = 30, 60, 25, 256  # seconds of silence, and to the last arrival; requests/s of each


@lru_cache(maxsize=8)
def served(lift: bool, seed: int = 0) -> Run:
    """N asks all the time, A from SILENT on, equally much."""
    prompts, answers = lengths.lognormal(NOISY_PROMPT, 0.7, 16, 6_000), lengths.lognormal(ANSWER, 1.0, 4, 1_024)
    busy = Workload.poisson(RATE, RATE * UNTIL, prompts, answers, seed=2 * seed)
    back = Workload.poisson(RATE, RATE * (UNTIL - SILENT), prompts, answers, seed=2 * seed + 1)
    load = Workload.mix({"A": replace(back, arrival=back.arrival + SILENT), "N": busy})
    load = replace(load, tenant=load.class_, class_=None)
    return serve(load, policies.Fair(SLOTS, BUDGET, lift=lift), STEP, POOL)


def stall(run: Run) -> float:
    """The longest time in which none of N was admitted, while N waited [s]."""
    admitted = np.sort(run.admitted[run.workload.tenant == "N"])
    return float(np.diff(admitted).max())


def share(run: Run) -> float:
    """A's share of the requests admitted from its return to the last arrival."""
    here = (run.admitted >= SILENT) & (run.admitted < UNTIL)
    return float((np.asarray(run.workload.tenant)[here] == "A").mean())
