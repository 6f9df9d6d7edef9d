"""Lab 16: what its two explorers ask of a result. Settings are searched for, so that they hold for other steps too."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab16 import load_test
from course.lessons.lab16.load_test import LoadTest
from course.lessons.lab16.many_tools import OneRun

START: dict[str, Any] = {"rate": 12, "max_concurrency": 16, "document_tokens": 65_536}
LONG = 1.0  # seconds: who waits longer has met the stall
TIMES = 10.0  # how far the p99 from the plan must be above the one without a limit
LEVEL: dict[str, Any] = {"rate": 64, "output_cv": 1.0, "tokens_per_piece": 1}
NEAR = 0.02  # of TPOT
MANY = 3.0  # times TPOT

# One test, two clocks


def p99(values: np.ndarray) -> float:
    """The 99th percentile, in the unit of the values."""
    return float(np.percentile(values, 99))


def _late(values: np.ndarray) -> int:
    """How many waited longer than LONG."""
    return int((values > LONG).sum())


def late_share(settings: Settings, result: LoadTest) -> float:
    """Requests that waited longer than LONG, from the plan, in per cent of all."""
    return 100 * _late(result.run.ttft) / len(result.run)


def most_unseen(settings: Settings, result: LoadTest) -> bool:
    """Whether the client wrote down fewer than a tenth of those."""
    return _late(result.written) < _late(result.run.ttft) / 10


def sees(settings: Settings, result: LoadTest) -> bool:
    """Whether the p99 in the report shows the stall."""
    return p99(result.written) > LONG


@lru_cache(maxsize=1)
def enough() -> Settings:
    """The smallest limit with which it does."""
    tests = ((limit, load_test.run_test(**START | {"max_concurrency": limit})) for limit in load_test.LIMITS)
    return {"max_concurrency": next(limit for limit, test in tests if sees(START, test))}


def one_in_a_hundred(settings: Settings, result: LoadTest) -> bool:
    """Whether more requests than that met the stall in the client's own times."""
    return _late(result.written) > len(result.run) / 100


def held(settings: Settings, result: LoadTest) -> bool:
    """Whether the client holds requests back at the rate of the start, without a document."""
    calm = settings["document_tokens"] == 0 and settings["rate"] == START["rate"]
    return calm and p99(result.run.ttft) >= TIMES * p99(result.free.ttft)


def unwritten(settings: Settings, result: LoadTest) -> bool:
    """Whether nothing of that wait is written down."""
    return p99(result.written) < 2 * p99(result.free.ttft)


def more_due_than_in_flight(settings: Settings, result: LoadTest) -> bool:
    """Whether more were due in the stall than may be in flight."""
    return settings["rate"] * result.stall > 2 * settings["max_concurrency"]


def clocks(settings: Settings, result: LoadTest) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "limit": f"{settings['max_concurrency']:,}",
        "written": seconds(p99(result.written)),
        "plan": seconds(p99(result.run.ttft)),
        "free": seconds(p99(result.free.ttft)),
        "late": f"{_late(result.run.ttft):,}",
        "late_share": f"{late_share(settings, result):.2g}%",
        "late_written": f"{_late(result.written):,}",
        "stall": seconds(result.stall),
        "due": f"{settings['rate'] * result.stall:.0f}",
    }


# One run, many tools


def mean(result: OneRun, tool: str, metric: str) -> float:
    """What a tool says of the run [s]."""
    return next(r.mean for r in result.readings if (r.tool, r.metric) == (tool, metric))


def ours(result: OneRun) -> tuple[float, float]:
    """Mean TPOT and mean ITL under the course's definitions [s]."""
    return mean(result, "this course", "TPOT"), mean(result, "this course", "ITL")


def _llmperf(result: OneRun) -> float:
    return mean(result, "llmperf", "inter token latency") / ours(result)[0] - 1


def _vllm(result: OneRun) -> float:
    """What vLLM's benchmark calls ITL, over our TPOT."""
    return mean(result, "vLLM bench serve", "ITL") / ours(result)[0]


def more(settings: Settings, result: OneRun) -> float:
    """How far llmperf's number is above our TPOT, in per cent."""
    return 100 * _llmperf(result)


def above(settings: Settings, result: OneRun) -> bool:
    """Whether it is above at all."""
    return _llmperf(result) > 0


def equal(settings: Settings, result: OneRun) -> bool:
    """Whether our two means differ by at most NEAR."""
    tpot, itl = ours(result)
    return abs(itl / tpot - 1) <= NEAR


def pieces(settings: Settings, result: OneRun) -> bool:
    """Whether vLLM's ITL is MANY times our TPOT."""
    return _vllm(result) >= MANY


def far_above_our_itl(settings: Settings, result: OneRun) -> bool:
    """Whether it is as far above our ITL."""
    return mean(result, "vLLM bench serve", "ITL") > MANY * ours(result)[1]


def long_ones_are_faster(settings: Settings, result: OneRun) -> bool:
    """Whether the longer half of the answers has shorter gaps, and most of them."""
    short, long, share = _halves(result)
    return short > long and share > 0.6


def _halves(result: OneRun) -> tuple[float, float, float]:
    """Mean TPOT of the shorter and of the longer half of the answers [s], and the share of gaps in the longer half."""
    gaps, tpot = result.seen.tokens - 1, result.seen.tpot
    short = gaps <= np.median(gaps)
    if short.all():  # all answers have as many gaps
        return float(np.nanmean(tpot)), float(np.nanmean(tpot)), 0.5
    return float(np.nanmean(tpot[short])), float(tpot[~short].mean()), float(gaps[~short].sum() / gaps.sum())


def tools(settings: Settings, result: OneRun) -> Mapping[str, Any]:
    """What the answers name."""
    tpot, itl = ours(result)
    short, long, share = _halves(result)
    return {
        "cv": f"{settings['output_cv']:g}",
        "pieces": f"{settings['tokens_per_piece']:g}",
        "tpot": seconds(tpot),
        "itl": seconds(itl),
        "vllm": seconds(mean(result, "vLLM bench serve", "ITL")),
        "times": f"{_vllm(result):.1f}",
        "llmperf": seconds(mean(result, "llmperf", "inter token latency")),
        "more": f"{_llmperf(result):.0%}",
        "short": seconds(short),
        "long": seconds(long),
        "share": f"{share:.0%}",
    }
