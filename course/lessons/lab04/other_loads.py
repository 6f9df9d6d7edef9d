"""What the optional notebook of lab 04 looks at: three policies below saturation, a trace, and an image service."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from course import policies, steptime, traces
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab04 import side_by_side
from course.lessons.lab04.three_batchers import CHAT, ROOFLINE, SLOTS, STEP
from course.workload import Workload

TRACE = traces.read(traces.example())
# A padded batch of the trace computes more prompt tokens in a step than were recorded: for it, the roofline.
LOADS = {"chat": (CHAT, STEP), "trace": (TRACE, ROOFLINE)}
E2E_SLO = 10.0  # seconds until the whole answer

RATES = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20)
STOPS = tuple(half / 2 for half in range(1, 41))  # of the slider for the rate
DELAYS = (0.1, 1.0, 10.0)

# An image takes one step; the numbers are made up, in the range of a small classifier.
IMAGE = steptime.PowerLaw(t0=2e-3, c=0, alpha=1, prefill=0.25e-3)
MOST_IMAGES = 16


@lru_cache(maxsize=4_000)
def _at_rate(load: str, name: str, max_queue_delay: float, rate: float):
    workload, step_time = LOADS[load]
    policy = side_by_side.three_policies(SLOTS, max_queue_delay)[name]
    run = serve(workload.scaled(rate), policy, step_time)
    return side_by_side.load_point(name, rate, run, E2E_SLO), run.warnings


def _points(load: str, rate: float, max_queue_delay: float):
    delays = {"static": 0.0, "dynamic": max_queue_delay, "continuous": 0.0}  # only dynamic depends on its delay
    return {name: _at_rate(load, name, delay, rate) for name, delay in delays.items()}


def under_load(load: str, rate: float, max_queue_delay: float, metric: tuple[str, int]) -> dict[str, Any]:
    """Each policy at this rate, and its lines over RATES; load: "chat" or "trace"; metric: ("e2e" or "ttft", percent).

    Delays in seconds, rates in requests/s.
    """
    here = _points(load, rate, max_queue_delay)
    lines = [_points(load, other, max_queue_delay) for other in RATES]
    return {
        "points": {name: point for name, (point, _) in here.items()},
        "curves": {name: [line[name][0] for line in lines] for name in here},
        "metric": metric,
        "warnings": [f"{name}: {text}" for name, (_, texts) in here.items() for text in texts],
    }


def compute_lines(load: str) -> None:
    """Compute every line that `under_load` may have to show, so that no move of a slider has to wait for one.

    The two policies without a delay also at every stop of the rate: a move then serves with the third one only.
    """
    for delay in DELAYS:
        under_load(load, RATES[0], delay, ("e2e", 95))
    for rate, name in product(STOPS, ("static", "continuous")):
        _at_rate(load, name, 0.0, rate)


def load_rows(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Percentiles, tokens/s, goodput and padding of each policy."""
    points = result["points"].values()
    return [
        ("", *result["points"]),
        *((f"whole answer, p{q}", *(f"{p.e2e[q]:.2f} s" for p in points)) for q in (50, 95)),
        ("first token, p95", *(f"{p.ttft[95]:.2f} s" for p in points)),
        ("tokens/s", *(f"{p.tokens_per_second:,.0f}" for p in points)),
        (f"requests/s within {E2E_SLO:.0f} s", *(f"{p.goodput:.2f}" for p in points)),
        ("padding", *(f"{p.padding:.0%}" for p in points)),
    ]


@lru_cache(maxsize=4_000)
def image_run(rate: float, max_queue_delay: float) -> Run:
    """2,000 images at `rate` a second behind a dynamic batcher; the delay in seconds."""
    images = Workload.poisson(rate=rate, num_requests=2_000, prompt_tokens=1, output_tokens=1)
    return serve(images, policies.Dynamic(MOST_IMAGES, max_queue_delay), IMAGE)


def image_service(rate: float, delay_ms: float) -> dict[str, Run]:
    """The service without a delay and with one."""
    return {"no delay": image_run(rate, 0.0), f"delay {delay_ms} ms": image_run(rate, delay_ms / 1e3)}


def image_rows(runs: Mapping[str, Run]) -> list[tuple[str, ...]]:
    """Mean batch, how busy the GPU is, and latency."""
    return [
        ("", *runs),
        ("mean batch", *(f"{len(run) / len(run.steps):.1f} images" for run in runs.values())),
        ("GPU busy", *(f"{run.steps.seconds.sum() / run.makespan:.0%}" for run in runs.values())),
        ("answered", *(f"{len(run) / run.makespan:,.0f} images/s" for run in runs.values())),
        *(
            (f"latency, p{q}", *(f"{1e3 * np.percentile(run.e2e, q):.1f} ms" for run in runs.values()))
            for q in (50, 95)
        ),
    ]
