"""Lab 00: what its explorers ask, one task for each part."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from course.explore.tasks import Find, Settings
from course.figures.words import seconds
from course.lessons.lab00 import together, traffic
from course.lessons.lab00.together import Together
from course.lessons.lab00.traffic import Traffic

GAIN = 10  # times as many tokens a second as one sequence alone
FAR = 20  # times the median
START = {"rate": 10.0, "arrival_cv": 1.0, "log": False}


@lru_cache(maxsize=1)
def _enough() -> Settings:
    """The fewest sequences that bring the gain."""
    return {"sequences": next(n for n in range(1, together.MOST + 1) if together.step(n).gain >= GAIN)}


def _together_facts(settings: Settings, result: Together) -> Mapping[str, Any]:
    return {
        "n": str(result.sequences),
        "step": seconds(result.seconds),
        "ratio": f"{result.ratio:.2f}",
        "gain": f"{result.gain:.1f}",
    }


TOGETHER = (
    Find(
        id="together",
        text="Move the number of sequences until the H100 generates at least ten times as many tokens a second as for "
        "one alone.",
        show=_enough,
        reached=lambda settings, result: result.gain >= GAIN,
        miss="With {n} in a step the H100 generates {gain} times as many tokens a second as for one.",
        answer="With {n} sequences a step takes {step}, {ratio} times a step for one, and the card generates {gain} "
        "times "
        "as many tokens a second.",
        facts=_together_facts,
        claim=lambda settings, result: result.ratio < result.sequences,
    ),
)


def _spread(result: Traffic) -> float:
    """The p99 of TTFT as a multiple of the median."""
    return result.percentile(99) / result.percentile(50)


def _far(settings: Settings, result: Traffic) -> bool:
    return settings["rate"] == START["rate"] and settings["log"] and _spread(result) >= FAR


@lru_cache(maxsize=1)
def _bursts() -> Settings:
    """The smallest spread of the gaps at which the tail is far from the median."""
    steps = (k / 2 for k in range(11))
    found = (cv for cv in steps if _spread(traffic.traffic(START["rate"], cv)) >= FAR)
    return {"arrival_cv": next(found), "log": True}


TRAFFIC = (
    Find(
        id="far",
        text="Keep the rate. Switch to the log axis, and raise the CV until the p99 of TTFT is at least twenty times "
        "the median (p50).",
        show=_bursts,
        reached=_far,
        miss="The p99 is {p99} and the median {p50}: {times} times. The rate is {rate}/s, the axis {axis}.",
        answer="With a CV of {cv} half of the people get their first token within {p50}, and one in a hundred waits "
        "longer than {p99}: {times} times as long. The mean, {mean}, describes neither.",
        facts=lambda settings, result: {
            "cv": f"{settings['arrival_cv']:g}",
            "rate": f"{settings['rate']:g}",
            "axis": "log" if settings["log"] else "linear",
            "p50": seconds(result.percentile(50)),
            "p99": seconds(result.percentile(99)),
            "mean": seconds(result.mean),
            "times": f"{_spread(result):.0f}",
        },
        claim=lambda settings, result: 1.5 * result.percentile(50) < result.mean < result.percentile(99) / 1.5,
    ),
)
