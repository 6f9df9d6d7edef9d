"""What the explorers of lab 04 compute: a chat service under three policies, and an image service behind a batcher.

Pure functions of the settings of the sliders, and the rows of their tables. Lines behind the dots are computed once.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from course import policies, steptime, traces
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab04 import side_by_side
from course.workload import Workload, lengths

# Not the recorded steps: a padded batch of the trace computes more prompt tokens in a step than were recorded.
H100 = steptime.Roofline("llama-3.1-8b", "H100")


def chat(rate: float = 6, num_requests: int = 2_000, seed: int = 0) -> Workload:
    """A draw of the lab's chat: Poisson arrivals [requests/s], prompts of 512 tokens, answers of 256 with a CV of 1."""
    return Workload.poisson(rate, num_requests, 512, lengths.lognormal(256, cv=1), seed)


CHAT = chat()
TRACE = traces.read(traces.example())
LOADS = {"chat, CV 1": CHAT, "Azure-style trace": TRACE}
SLOTS = 32
E2E_SLO = 10.0  # seconds until the whole answer

SPREADS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)
BATCHES = (4, 8, 16, 32, 64, 128)
RATES = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20)
STOPS = tuple(half / 2 for half in range(1, 41))  # of the slider for the rate
DELAYS = (0.1, 1.0, 10.0)

# An image takes one step; the numbers are made up, in the range of a small classifier.
IMAGE = steptime.PowerLaw(t0=2e-3, c=0, alpha=1, prefill=0.25e-3)
MOST_IMAGES = 16


def timelines(
    workload: str, slots: int, output_cv: float, rate: float, max_queue_delay: float, follow: int
) -> tuple[dict[str, Run], int]:
    """Sixteen requests under each policy, and the request to follow. workload: "drawn" or "trace"."""
    if workload == "drawn":
        load = Workload.poisson(
            rate=rate, num_requests=16, prompt_tokens=1024, output_tokens=lengths.lognormal(64, output_cv)
        )
    else:
        load = TRACE.head(16).scaled(rate)
    by_name = side_by_side.three_policies(slots, max_queue_delay, max_num_batched_tokens=2048)
    return side_by_side.serve_each(load, by_name, H100), follow


def timeline_rows(result: tuple[Mapping[str, Run], int]) -> list[tuple[str, ...]]:
    """Mean and longest time to an answer, and the slot-steps."""
    runs = result[0]
    return [
        ("", *runs),
        ("mean time to an answer", *(f"{run.e2e.mean():.2f} s" for run in runs.values())),
        ("longest time to an answer", *(f"{run.e2e.max():.2f} s" for run in runs.values())),
        ("wanted slot-steps", *(f"{run.steps.useful.sum():,}" for run in runs.values())),
        ("padding slot-steps", *(f"{run.steps.wasted.sum():,}" for run in runs.values())),
    ]


@lru_cache(maxsize=1_000)
def gain(max_num_seqs: int, output_cv: float) -> side_by_side.Gain:
    """Both policies at saturation, 2,000 requests."""
    return side_by_side.saturated_gain(H100, max_num_seqs=max_num_seqs, output_cv=output_cv)


def gain_sweep() -> list[side_by_side.Gain]:
    """The gain on the grid of BATCHES and SPREADS."""
    return [gain(slots, output_cv) for slots in BATCHES for output_cv in SPREADS]


def gain_rows(result: side_by_side.Gain) -> list[tuple[str, str]]:
    """The two rates, their ratio, and the bound in slot-steps, expected and drawn."""
    return [
        ("static (and dynamic)", f"{result.static:,.0f} tokens/s"),
        ("continuous", f"{result.continuous:,.0f} tokens/s"),
        ("gain, simulated", f"{result.gain:.2f} x"),
        ("E[max] / mean, expected", f"{result.bound:.2f} x"),
        ("E[max] / mean, as drawn", f"{result.drawn_bound:.2f} x"),
    ]


@lru_cache(maxsize=4_000)
def _at_rate(workload: str, name: str, max_queue_delay: float, rate: float):
    policy = side_by_side.three_policies(SLOTS, max_queue_delay)[name]
    run = serve(LOADS[workload].scaled(rate), policy, H100)
    return side_by_side.load_point(name, rate, run, E2E_SLO), run.warnings


def _points(workload: str, rate: float, max_queue_delay: float):
    delays = {"static": 0.0, "dynamic": max_queue_delay, "continuous": 0.0}  # only dynamic depends on its delay
    return {name: _at_rate(workload, name, delay, rate) for name, delay in delays.items()}


def under_load(workload: str, rate: float, max_queue_delay: float, metric: tuple[str, int]) -> dict[str, Any]:
    """Each policy at this rate, and its lines over RATES; metric: ("e2e" or "ttft", percentile)."""
    here = _points(workload, rate, max_queue_delay)
    lines = [_points(workload, other, max_queue_delay) for other in RATES]
    return {
        "points": {name: point for name, (point, _) in here.items()},
        "curves": {name: [line[name][0] for line in lines] for name in here},
        "metric": metric,
        "warnings": [f"{name}: {text}" for name, (_, texts) in here.items() for text in texts],
    }


def compute_lines() -> None:
    """Compute every line that `under_load` may have to show, so that no move of a slider has to wait for one.

    The two policies without a delay also at every stop of the rate: a move then serves with the third one only.
    """
    for workload in LOADS:
        for delay in DELAYS:
            under_load(workload, RATES[0], delay, ("e2e", 95))
        for rate, name in product(STOPS, ("static", "continuous")):
            _at_rate(workload, name, 0.0, rate)


def load_rows(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Percentiles, tokens/s, goodput and padding of each policy."""
    points = result["points"].values()
    return [
        ("", *result["points"]),
        *((f"whole answer, p{q}", *(f"{p.e2e[q]:.2f} s" for p in points)) for q in side_by_side.PERCENTILES),
        ("first token, p95", *(f"{p.ttft[95]:.2f} s" for p in points)),
        ("output", *(f"{p.tokens_per_second:,.0f} tokens/s" for p in points)),
        (f"goodput (answer in {E2E_SLO:.0f} s)", *(f"{p.goodput:.2f} requests/s" for p in points)),
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
