"""Lab 01: what its two explorers ask. Settings are searched for, so that they hold for other step times too."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from course.explore.tasks import Find, Read, Settings, Why
from course.explore.words import Spoken
from course.figures.words import seconds
from course.lessons.lab01 import chat
from course.lessons.lab01.chat import OUTSIDE_MS, PROMPT, RATE, WINDOW_MS, Chat

# Words on the screen

SPOKEN = {"rate": 32, "max_num_seqs": 4, "policy": "continuous"}
ROW = 7
"""The request that is followed."""
LINE = 5
"""Of twelve. With one slot, a machine with steps of 0.35 ms, half those of a server core, still has so many in line."""


def _spoken_facts(settings: Settings, result: Spoken) -> Mapping[str, Any]:
    run = result.run
    first = run.first_computed - run.arrival
    tokens = int(run.workload.output_tokens[ROW])
    later = float(run.response[ROW] - run.arrival[ROW])
    return {
        "row": ROW,
        "wait": result.time(result.wait(ROW)),
        "ttft": result.time(float(run.ttft[ROW])),
        "e2e": result.time(later),
        "tokens": f"{tokens:,}",
        "line": f"{result.longest_line:,}",
        "mean": result.time(float(run.ttft.mean())),
        "there": result.time(float(first.mean())),
    }


def _at_start(settings: Settings, **changed: Any) -> bool:
    """Whether the live view is where it was at the start, but for these."""
    return all(settings[name] == value for name, value in (SPOKEN | changed).items())


WORDS = (
    Read(
        id="stream",
        text=f"Play to the end. What is the TTFT of request #{ROW}, in ms?",
        show={},
        value=lambda settings, result: 1e3 * float(result.run.ttft[ROW]),
        unit="ms",
        where=lambda settings, result: _at_start(settings),
        slips=((1e-3, "That is in seconds: the task asks for milliseconds."),),
        facts=_spoken_facts,
        answer="Its TTFT is {ttft}, {wait} of it in line. The last of its {tokens} tokens came after {e2e}.",
        claim=lambda settings, result: (
            result.wait(ROW) <= float(result.run.ttft[ROW]) <= float(result.run.e2e[ROW])
        ),
    ),
    Find(
        id="line",
        text=f"With one slot, find a rate at which {LINE} or more requests wait in line at once.",
        show={"rate": 128, "max_num_seqs": 1},
        reached=lambda settings, result: settings["max_num_seqs"] == 1 and result.longest_line >= LINE,
        facts=_spoken_facts,
        miss="The longest line is {line}. Is there one slot?",
        answer="{line} wait in line, and the mean TTFT is {mean}.",
    ),
    Read(
        id="held",
        text="Press Reset, choose static, and play to the end. What is the mean TTFT, in ms?",
        show={"policy": "static"},
        value=lambda settings, result: 1e3 * float(result.run.ttft.mean()),
        unit="ms",
        where=lambda settings, result: _at_start(settings, policy="static"),
        slips=((1e-3, "That is in seconds: the task asks for milliseconds."),),
        facts=_spoken_facts,
        answer="It is {mean}, though the first tokens were computed after {there} on average.",
        claim=lambda settings, result: bool(np.all(result.run.ttft >= result.run.first_computed - result.run.arrival)),
    ),
    Why(
        id="unsent",
        text="Why do people wait so long for tokens that are there already?",
        show={"policy": "static"},
        facts=_spoken_facts,
        options=(
            ("Static batching computes prompts later.", "It does. But look at words that are there already."),
            ("Its steps take longer, being fuller.", "A step of four takes the same time under either policy."),
            ("A batch is sent once all are done.", ""),
        ),
        right="c",
        answer="They are computed after {there} on average, and sent after {mean}.",
        claim=lambda settings, result: float(result.run.ttft.mean()) > float(
            (result.run.first_computed - result.run.arrival).mean()
        ),
    ),
)  # fmt: skip


# Where the time goes

START = {"rate": RATE, "window_ms": WINDOW_MS, "prompt": PROMPT, "outside_ms": OUTSIDE_MS}
FAST, TIMES = 0.100, 2.0  # seconds of mean TTFT; p99 over p50
RATES = range(2, 17)


def _only(settings: Settings, free: str) -> bool:
    """Whether all sliders but that one are where they were at the start."""
    return all(settings[name] == value for name, value in START.items() if name != free)


def _spread(found: Chat) -> float:
    return found.percentile(99) / found.percentile(50)


def _mean(found: Chat) -> float:
    return float(found.ttft.mean())


@lru_cache(maxsize=1)
def _short_window() -> Settings:
    """The longest window with which the mean TTFT is fast."""
    windows = range(WINDOW_MS, -1, -5)
    return {"window_ms": next(window for window in windows if _mean(chat.chat(window_ms=window)) < FAST)}


@lru_cache(maxsize=1)
def _tail() -> Settings:
    """The lowest rate at which the p99 is far from the p50."""
    return {"rate": next(rate for rate in RATES if _spread(chat.chat(rate=rate)) >= TIMES)}


def _chat_facts(settings: Settings, found: Chat) -> Mapping[str, Any]:
    before = chat.chat()
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
        "before": f"{before.tokens_per_second:,.0f}",
    }


GOES = (
    Read(
        id="inside",
        text="At the start: how many ms of the mean TTFT are queue and prefill?",
        show={},
        value=lambda settings, found: 1e3 * found.engine,
        unit="ms",
        where=lambda settings, found: dict(settings) == START,
        slips=((1e-3, "That is in seconds: the task asks for milliseconds."),),
        facts=_chat_facts,
        answer="{engine} of {ttft}. The window takes {wait}, the time outside {outside}.",
        claim=lambda settings, found: found.engine < _mean(found) / 2,
    ),
    Find(
        id="short",
        text="Move only the window, until the mean TTFT is below 0.1 s.",
        show=_short_window,
        reached=lambda settings, found: _only(settings, "window_ms") and _mean(found) < FAST,
        facts=_chat_facts,
        miss="With a window of {window} the mean TTFT is {ttft}.",
        answer="With {window} it is {ttft}. The chat gets {tokens} tokens/s, {before} before: the window gained none.",
        claim=lambda settings, found: abs(found.tokens_per_second / chat.chat().tokens_per_second - 1) < 0.01,
    ),
    Find(
        id="tail",
        text="Press Reset. Move only the rate, until the p99 is at least twice the p50.",
        show=_tail,
        reached=lambda settings, found: _only(settings, "rate") and _spread(found) >= TIMES,
        facts=_chat_facts,
        miss="At {rate} requests/s the p99 is {p99} and the p50 {p50}.",
        answer="At {rate} requests/s the p99 is {p99}, {times} times the p50. Around the p99 the queue takes {queue}.",
        claim=lambda settings, found: found.near("queue", 99) > found.percentile(99) / 2,
    ),
    Why(
        id="few",
        text="Why does the p99 move here, but hardly the p50?",
        show=_tail,
        facts=_chat_facts,
        options=(
            ("A few find all slots taken, and wait.", ""),
            ("Each step takes longer at this rate.", "Then everybody's prefill would take longer, at the p50 too."),
            ("A few of the prompts are very long.", "All prompts have the same length. Which part grew?"),
        ),
        right="a",
        answer="Around the p50 the queue takes {queue_50}, around the p99 {queue}.",
        claim=lambda settings, found: found.near("queue", 99) > 10 * found.near("queue", 50),
    ),
)
