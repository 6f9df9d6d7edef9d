"""Lab 01: what its two explorers ask of a result. Settings are searched for, so that they hold for other steps too."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from course.explore.tasks import Settings
from course.explore.words import Spoken
from course.figures.words import seconds
from course.lessons.lab01 import chat
from course.lessons.lab01.chat import WINDOW_MS, Chat

# Words on the screen

SPOKEN: dict[str, Any] = {"policy": "continuous", "rate": 32, "max_num_seqs": 4}
ROW = 7
"""The request that is followed."""
LINE = 5
"""Of twelve. With one slot, a machine with steps of 0.35 ms, half those of a server core, still has so many in line."""


def first_token(settings: Settings, result: Spoken) -> float:
    """TTFT of the request that is followed [ms]."""
    return 1e3 * float(result.run.ttft[ROW])


def waits_in_between(settings: Settings, result: Spoken) -> bool:
    """Whether its TTFT lies between its wait in line and its E2E."""
    return result.wait(ROW) <= float(result.run.ttft[ROW]) <= float(result.run.e2e[ROW])


def long_line(settings: Settings, result: Spoken) -> bool:
    """Whether LINE requests wait at once for a single slot."""
    return settings["max_num_seqs"] == 1 and result.longest_line >= LINE


def static_at_start(settings: Settings, result: Spoken) -> bool:
    """Whether the policy alone was changed, to static."""
    return all(settings[name] == value for name, value in (SPOKEN | {"policy": "static"}).items())


def mean_first_token(settings: Settings, result: Spoken) -> float:
    """Mean TTFT [ms]."""
    return 1e3 * float(result.run.ttft.mean())


def never_before_computed(settings: Settings, result: Spoken) -> bool:
    """Whether nobody gets a first token before it is computed."""
    return bool(np.all(result.run.ttft >= result.run.first_computed - result.run.arrival))


def computed_before(settings: Settings, result: Spoken) -> bool:
    """Whether first tokens are computed before they are sent, on average."""
    return float(result.run.ttft.mean()) > float((result.run.first_computed - result.run.arrival).mean())


def spoken(settings: Settings, result: Spoken) -> Mapping[str, Any]:
    """What the answers name."""
    run = result.run
    return {
        "row": ROW,
        "wait": result.time(result.wait(ROW)),
        "ttft": result.time(float(run.ttft[ROW])),
        "e2e": result.time(float(run.response[ROW] - run.arrival[ROW])),
        "tokens": f"{int(run.workload.output_tokens[ROW]):,}",
        "line": f"{result.longest_line:,}",
        "mean": result.time(float(run.ttft.mean())),
        "there": result.time(float((run.first_computed - run.arrival).mean())),
    }


# Where the time goes

FAST, TIMES = 0.100, 2.0  # seconds of mean TTFT; p99 over p50
RATES = range(2, 17)


def inside(settings: Settings, found: Chat) -> float:
    """Queue and prefill, in the mean [ms]."""
    return 1e3 * found.engine


def mostly_before(settings: Settings, found: Chat) -> bool:
    """Whether the engine has less than half of the mean TTFT."""
    return found.engine < _mean(found) / 2


def fast(settings: Settings, found: Chat) -> bool:
    """Whether the mean TTFT is below FAST."""
    return _mean(found) < FAST


def no_tokens_gained(settings: Settings, found: Chat) -> bool:
    """Whether the chat gets as many tokens/s as at the start."""
    return abs(found.tokens_per_second / chat.chat().tokens_per_second - 1) < 0.01


def spread(settings: Settings, found: Chat) -> bool:
    """Whether the p99 is TIMES the p50 or more."""
    return _spread(found) >= TIMES


def tail_queues(settings: Settings, found: Chat) -> bool:
    """Whether most of the p99 is queueing."""
    return found.near("queue", 99) > found.percentile(99) / 2


def few_queue(settings: Settings, found: Chat) -> bool:
    """Whether those around the p99 queue far longer than those around the p50."""
    return found.near("queue", 99) > 10 * found.near("queue", 50)


@lru_cache(maxsize=1)
def short_window() -> Settings:
    """The longest window with which the mean TTFT is fast."""
    windows = range(WINDOW_MS, -1, -5)
    return {"window_ms": next(window for window in windows if _mean(chat.chat(window_ms=window)) < FAST)}


@lru_cache(maxsize=1)
def far_tail() -> Settings:
    """The lowest rate at which the p99 is far from the p50."""
    return {"rate": next(rate for rate in RATES if _spread(chat.chat(rate=rate)) >= TIMES)}


def parts(settings: Settings, found: Chat) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "engine": seconds(found.engine),
        "ttft": seconds(_mean(found)),
        "window": seconds(found.window),
        "wait": seconds(found.mean("window")),
        "outside": seconds(found.outside),
        "rate": f"{settings['rate']:g}",
        "p50": seconds(found.percentile(50)),
        "p99": seconds(found.percentile(99)),
        "times": f"{_spread(found):.1f}",
        "queue": seconds(found.near("queue", 99)),
        "queue_50": seconds(found.near("queue", 50)),
        "tokens": f"{found.tokens_per_second:,.0f}",
        "before": f"{chat.chat().tokens_per_second:,.0f}",
    }


def _spread(found: Chat) -> float:
    return found.percentile(99) / found.percentile(50)


def _mean(found: Chat) -> float:
    return float(found.ttft.mean())
