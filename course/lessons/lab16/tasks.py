"""Lab 16: what its two explorers ask. Settings are searched for, so that they hold for other step times too."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from course.explore.tasks import Find, Read, Settings, Why
from course.figures.words import seconds
from course.lessons.lab16 import load_test
from course.lessons.lab16.load_test import LoadTest
from course.lessons.lab16.many_tools import OneRun

# One test, two clocks

START = {"rate": 12, "max_concurrency": 16, "document_tokens": 65_536}
LONG = 1.0  # seconds: who waits longer has met the stall
TIMES = 10.0  # how far the p99 from the plan must be above the one without a limit


def _p99(values: np.ndarray) -> float:
    return float(np.percentile(values, 99))


def _late(values: np.ndarray) -> int:
    """How many waited longer than LONG."""
    return int((values > LONG).sum())


def _only(settings: Settings, start: Settings, free: str) -> bool:
    """Whether all controls but that one are where they were at the start."""
    return all(settings[name] == value for name, value in start.items() if name != free)


def _sees(settings: Settings, result: LoadTest) -> bool:
    return _only(settings, START, "max_concurrency") and _p99(result.written) > LONG


@lru_cache(maxsize=1)
def _enough() -> Settings:
    """The smallest limit with which the p99 in the report sees the stall."""
    found = (limit for limit in load_test.LIMITS if _p99(_test(max_concurrency=limit).written) > LONG)
    return {"max_concurrency": next(found)}


def _test(**moved: Any) -> LoadTest:
    return load_test.run_test(**(START | moved))


def _held(settings: Settings, result: LoadTest) -> bool:
    calm = settings["document_tokens"] == 0 and settings["rate"] == START["rate"]
    return calm and _p99(result.run.ttft) >= TIMES * _p99(result.free.ttft)


def _clock_facts(settings: Settings, result: LoadTest) -> Mapping[str, Any]:
    requests = len(result.run)
    return {
        "limit": f"{settings['max_concurrency']:,}",
        "share": f"{settings['max_concurrency'] / requests:.1%}",
        "written": seconds(_p99(result.written)),
        "plan": seconds(_p99(result.run.ttft)),
        "free": seconds(_p99(result.free.ttft)),
        "late": f"{_late(result.run.ttft):,}",
        "late_written": f"{_late(result.written):,}",
        "stall": seconds(result.stall),
        "due": f"{settings['rate'] * result.stall:.0f}",
    }


CLOCKS = (
    Read(
        id="unseen",
        text="At the start: how many requests waited longer than 1 s, counted from the plan?",
        show={},
        value=lambda settings, result: _late(result.run.ttft),
        unit="requests",
        where=lambda settings, result: dict(settings) == START,
        rtol=0.005,
        answer="{late}, and the client wrote down {late_written} of them.",
        facts=_clock_facts,
        claim=lambda settings, result: _late(result.written) < _late(result.run.ttft) / 10,
    ),
    Find(
        id="sees",
        text="Raise only the limit, until the p99 written down is above 1 s.",
        show=_enough,
        reached=_sees,
        miss="With {limit} in flight the p99 written down is {written}.",
        answer="With {limit} in flight {late_written} requests met the stall: more than one in a hundred.",
        facts=_clock_facts,
        claim=lambda settings, result: _late(result.written) > len(result.run) / 100,
    ),
    Find(
        id="held",
        text="Press Reset and take the document away. Change the limit until the p99 from the plan is ten times that "
        "without a limit.",
        show={"document_tokens": 0, "max_concurrency": 8},
        reached=_held,
        miss="The p99 from the plan is {plan}; without a limit it is {free}.",
        answer="With {limit} in flight it is {plan}, not {free}: requests wait in the client.",
        facts=_clock_facts,
        claim=lambda settings, result: _p99(result.written) < 2 * _p99(result.free.ttft),
    ),
    Why(
        id="omits",
        text="At the start: why does the client miss most of those who waited?",
        show={},
        options=(
            ("They gave up before a first token.", "All requests are answered: nobody gives up in this test."),
            ("Its requests are too few.", "Without a limit the p99 of as many requests shows it."),
            ("It sent them afterwards.", ""),
        ),
        right="c",
        answer="About {due} were due in {stall}, with {limit} in flight at most.",
        facts=_clock_facts,
        claim=lambda settings, result: settings["rate"] * result.stall > 2 * settings["max_concurrency"],
    ),
)


# One run, many tools

LEVEL: dict[str, Any] = {"rate": 64, "output_cv": 1.0, "tokens_per_piece": 1}
NEAR = 0.02  # of TPOT
MANY = 3.0  # times TPOT


def _mean(result: OneRun, tool: str, metric: str) -> float:
    return next(r.mean for r in result.readings if (r.tool, r.metric) == (tool, metric))


def _ours(result: OneRun) -> tuple[float, float]:
    """Mean TPOT and mean ITL under the course's definitions [s]."""
    return _mean(result, "this course", "TPOT"), _mean(result, "this course", "ITL")


def _vllm(result: OneRun) -> float:
    """What vLLM's benchmark calls ITL, over our TPOT."""
    return _mean(result, "vLLM bench serve", "ITL") / _ours(result)[0]


def _llmperf(result: OneRun) -> float:
    """How far llmperf's number is above our TPOT, as a share."""
    return _mean(result, "llmperf", "inter token latency") / _ours(result)[0] - 1


def _equal(settings: Settings, result: OneRun) -> bool:
    tpot, itl = _ours(result)
    return _only(settings, LEVEL, "output_cv") and abs(itl / tpot - 1) <= NEAR


def _halves(result: OneRun) -> tuple[float, float, float]:
    """Mean TPOT of the shorter and of the longer half of the answers [s], and the share of gaps in the longer half."""
    gaps, tpot = result.seen.tokens - 1, result.seen.tpot
    short = gaps <= np.median(gaps)
    if short.all():  # all answers have as many gaps
        return float(np.nanmean(tpot)), float(np.nanmean(tpot)), 0.5
    return float(np.nanmean(tpot[short])), float(tpot[~short].mean()), float(gaps[~short].sum() / gaps.sum())


def _tool_facts(settings: Settings, result: OneRun) -> Mapping[str, Any]:
    tpot, itl = _ours(result)
    short, long, share = _halves(result)
    return {
        "cv": f"{settings['output_cv']:g}",
        "pieces": f"{settings['tokens_per_piece']:g}",
        "tpot": seconds(tpot),
        "itl": seconds(itl),
        "vllm": seconds(_mean(result, "vLLM bench serve", "ITL")),
        "times": f"{_vllm(result):.1f}",
        "llmperf": seconds(_mean(result, "llmperf", "inter token latency")),
        "more": f"{_llmperf(result):.0%}",
        "short": seconds(short),
        "long": seconds(long),
        "share": f"{share:.0%}",
    }


TOOLS = (
    Read(
        id="more",
        text="At the start: by how many per cent is llmperf above our TPOT?",
        show={},
        value=lambda settings, result: 100 * _llmperf(result),
        unit="%",
        where=lambda settings, result: dict(settings) == LEVEL,
        rtol=0.1,
        slips=((0.01, "That is a fraction: give it in per cent."),),
        answer="{more}: {llmperf} against {tpot}, since TTFT is in it.",
        facts=_tool_facts,
        claim=lambda settings, result: _llmperf(result) > 0,
    ),
    Find(
        id="equal",
        text="Change only the spread, until our ITL and TPOT differ by at most 2%.",
        show={"output_cv": 0.0},
        reached=_equal,
        miss="At a spread of {cv} the mean TPOT is {tpot} and the mean ITL {itl}.",
        answer="At a spread of {cv} they are {itl} and {tpot}: all answers have about the same number of gaps.",
        facts=_tool_facts,
    ),
    Find(
        id="pieces",
        text="Press Reset. Change only the tokens in a piece, until vLLM's ITL is three times our TPOT.",
        show={"tokens_per_piece": 4},
        reached=lambda settings, result: _only(settings, LEVEL, "tokens_per_piece") and _vllm(result) >= MANY,
        miss="With {pieces} tokens in a piece vLLM's ITL is {times} times our TPOT.",
        answer="With {pieces} tokens in a piece it is {vllm}: it counts the gaps between pieces.",
        facts=_tool_facts,
        claim=lambda settings, result: _vllm(result) > MANY * _mean(result, "this course", "ITL") / _ours(result)[0],
    ),
    Why(
        id="below",
        text="At the start: why is our ITL below our TPOT?",
        show={},
        options=(
            ("Long answers have most of the gaps.", ""),
            ("TPOT includes the first token.", "Ours does not: it begins at the first token."),
            ("Some gaps hold several tokens.", "At the start each piece holds one token."),
        ),
        right="a",
        answer="The longer half of the answers has {share} of the gaps, at {long} a token; the shorter half has "
        "{short}.",
        facts=_tool_facts,
        claim=lambda settings, result: _halves(result)[0] > _halves(result)[1] and _halves(result)[2] > 0.6,
    ),
)
