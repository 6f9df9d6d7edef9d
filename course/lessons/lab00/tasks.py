"""Lab 00: what its explorers ask of a result, one task for each part."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab00 import together, traffic
from course.lessons.lab00.together import Together
from course.lessons.lab00.traffic import Traffic

GAIN = 10  # times as many tokens a second as one sequence alone
FAR = 20  # times the median
START: dict[str, Any] = {"rate": 10.0, "arrival_cv": 1.0, "log": False}


def ten_times(settings: Settings, result: Together) -> bool:
    """Whether the step generates GAIN times as many tokens a second."""
    return result.gain >= GAIN


def not_as_long(settings: Settings, result: Together) -> bool:
    """Whether it takes less than a step for each would."""
    return result.ratio < result.sequences


@lru_cache(maxsize=1)
def enough() -> Settings:
    """The fewest sequences that bring the gain."""
    return {"sequences": next(n for n in range(1, together.MOST + 1) if together.step(n).gain >= GAIN)}


def together_facts(settings: Settings, result: Together) -> Mapping[str, Any]:
    """What the answer names."""
    return {
        "n": str(result.sequences),
        "step": seconds(result.seconds),
        "ratio": f"{result.ratio:.2f}",
        "gain": f"{result.gain:.1f}",
    }


def _spread(result: Traffic) -> float:
    """The p99 of TTFT as a multiple of the median."""
    return result.percentile(99) / result.percentile(50)


def far(settings: Settings, result: Traffic) -> bool:
    """Whether the tail is far from the median, on the log axis and at the rate of the start."""
    return settings["rate"] == START["rate"] and bool(settings["log"]) and _spread(result) >= FAR


def the_mean_is_neither(settings: Settings, result: Traffic) -> bool:
    """Whether the mean is far from the median and from the tail."""
    return 1.5 * result.percentile(50) < result.mean < result.percentile(99) / 1.5


@lru_cache(maxsize=1)
def bursts() -> Settings:
    """The smallest spread of the gaps at which the tail is far from the median."""
    steps = (k / 2 for k in range(11))
    return {"arrival_cv": next(cv for cv in steps if _spread(traffic.traffic(START["rate"], cv)) >= FAR), "log": True}


def traffic_facts(settings: Settings, result: Traffic) -> Mapping[str, Any]:
    """What the answer names."""
    return {
        "cv": f"{settings['arrival_cv']:g}",
        "rate": f"{settings['rate']:g}",
        "axis": "log" if settings["log"] else "linear",
        "p50": seconds(result.percentile(50)),
        "p99": seconds(result.percentile(99)),
        "mean": seconds(result.mean),
        "times": f"{_spread(result):.0f}",
    }
