"""A run of our own that took real time as a Result, as benchmark files are read."""

from __future__ import annotations

import numpy as np

from course.base import settings
from course.calibration.engine import Engine
from course.engine.run import Run
from course.results import Result
from course.results.definitions import OURS, Definition
from course.results.result import Requests

TOOL = "course, live"


def result_of(run: Run, name: str = "live run") -> Result:
    """What the run measured of each request, under the definitions used here.

    Request-level policies answer when the batch ends: there is no TPOT and no ITL then.
    """
    if not isinstance(run, Run):
        raise ValueError(f"this takes a Run, not {settings.quote(run)}")
    n = len(run)
    table = Requests(
        arrival=run.arrival - run.arrival.min(),
        prompt_tokens=run.workload.prompt_tokens.astype(np.float64),
        output_tokens=run.workload.output_tokens.astype(np.float64),
        ttft=run.ttft.copy(),
        tpot=run.tpot.copy(),
        e2e=run.e2e.copy(),
        queue_wait=run.queue_wait.copy(),
        failed=np.zeros(n, dtype=bool),
        itl=None if run.batch_answers else [np.diff(run.token_times(row)) for row in range(n)],
    )
    summary = table.summary()
    tokens = float(table.output_tokens.sum())
    totals = {
        "requests": float(n),
        "failed": 0.0,
        "duration": run.makespan,
        "prompt_tokens": float(table.prompt_tokens.sum()),
        "output_tokens": tokens,
        "requests_per_second": n / run.makespan,
        "output_tokens_per_second": tokens / run.makespan,
        "in_flight": float(run.e2e.sum()) / run.makespan,
        "preemptions": float(run.preempted.sum()),
    }
    definitions = {metric: Definition(OURS[metric], OURS[metric], True, stats) for metric, stats in summary.items()}
    return Result(TOOL, name, table, summary, definitions, totals)


def engine_of_run(run: Run) -> Engine:
    """The engine that served this run."""
    return Engine(run.policy, run.cache)
