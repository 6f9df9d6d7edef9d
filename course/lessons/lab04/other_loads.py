"""What the optional notebook of lab 04 looks at: three policies below saturation, and a trace."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any

from course import traces
from course.engine.serving import serve
from course.lessons.lab04 import side_by_side
from course.lessons.lab04.three_batchers import CHAT, SLOTS, STEP

TRACE = traces.read(traces.example())
# A padded batch of it computes more prompt tokens in a step than were recorded: it is served on the roofline.
E2E_SLO = 10.0  # seconds until the whole answer

RATES = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20)
STOPS = tuple(half / 2 for half in range(1, 41))  # of the slider for the rate
DELAYS = (0.1, 1.0, 10.0)


@lru_cache(maxsize=4_000)
def _at_rate(name: str, max_queue_delay: float, rate: float):
    run = serve(CHAT.scaled(rate), side_by_side.three_policies(SLOTS, max_queue_delay)[name], STEP)
    return side_by_side.load_point(name, rate, run, E2E_SLO), run.warnings


def _points(rate: float, max_queue_delay: float):
    delays = {"static": 0.0, "dynamic": max_queue_delay, "continuous": 0.0}  # only dynamic depends on its delay
    return {name: _at_rate(name, delay, rate) for name, delay in delays.items()}


def under_load(rate: float, max_queue_delay: float, metric: tuple[str, int]) -> dict[str, Any]:
    """The chat under each policy at this rate, and lines over RATES; metric: ("e2e" or "ttft", percent).

    Delays in seconds, rates in requests/s.
    """
    here, lines = _points(rate, max_queue_delay), [_points(other, max_queue_delay) for other in RATES]
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
    for delay in DELAYS:
        under_load(RATES[0], delay, ("e2e", 95))
    for rate, name in product(STOPS, ("static", "continuous")):
        _at_rate(name, 0.0, rate)


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
