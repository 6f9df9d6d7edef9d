"""The service of lab 05's story: a toy whose step grows with its batch, behind either of two loops.

The step goes through two times that are often quoted for a decode step: 0.9 ms for 4 sequences and 1.9 ms for 16.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from course import policies, steptime
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.lessons.lab05.served import Served
from course.workload import Workload

POINTS = ((4, 0.9e-3), (16, 1.9e-3))  # sequences, and seconds of their step
C = (POINTS[1][1] - POINTS[0][1]) / (POINTS[1][0] - POINTS[0][0])  # seconds a sequence
T0 = POINTS[0][1] - C * POINTS[0][0]  # seconds
STEP = steptime.PowerLaw(t0=T0, c=C, alpha=1, prefill=C)
"""A prompt of this toy is one token, which costs what a decode does."""
REQUESTS, RATE, TOKENS, SLOTS, WINDOW_MS = 2_000, 80, 32, 16, 6.0
LOOPS: dict[str, type[policies.Window]] = {"note": policies.NoteWindow, "window": policies.Window}
WORDS = {"note": "waits before every step", "window": "waits when idle"}
BULK = {"rate": 120, "tokens": 512, "slots": 64, "window_ms": 20.0}
"""An example that is often given for throughput."""


@lru_cache(maxsize=256)
def served(
    loop: str = "note", window_ms: float = WINDOW_MS, rate: float = RATE, bmax: int = SLOTS, seed: int = 0,
    num_requests: int = REQUESTS, tokens: int = TOKENS,
) -> Served:  # fmt: skip
    """Serve the toy. loop: "note" or "window". window_ms: milliseconds. rate: requests/s. bmax: slots.

    Raises ValueError for a window below 0 and for settings that the workload or the policy refuses.
    """
    load = Workload.poisson(rate, num_requests, 1, tokens, seed)
    window = window_ms / 1e3
    return Served(window, serve(load, LOOPS[loop](bmax, window), STEP))


def rows(found: Served) -> list[tuple[str, str]]:
    """Rows for a table: the card's numbers, then those of the users."""
    return [
        ("tokens/s of GPU time", f"{found.gpu_tokens:,.0f}"),
        ("GPU computes", f"{found.busy:.1%} of the time"),
        ("batch, mean", f"{found.batch:.2f}"),
        ("step, mean", seconds(found.step)),
        ("TTFT, p95", seconds(found.p95)),
        ("TPOT, mean", seconds(found.tpot)),
        ("E2E, mean", seconds(found.e2e)),
    ]


def two_loops() -> list[tuple[str, ...]]:
    """The question's table: the card's numbers of the loop that waits, and of one that does not."""
    waits, never = served(), served("window", 0.0)
    return [
        ("", f"waits {WINDOW_MS:g} ms", "waits for nobody"),
        ("sequences in a step", f"{waits.batch:.1f}", f"{never.batch:.1f}"),
        ("tokens/s of GPU time", f"{waits.gpu_tokens:,.0f}", f"{never.gpu_tokens:,.0f}"),
    ]


def four_loops() -> list[tuple[str, ...]]:
    """The table of the explanation: each loop by both clocks."""
    runs = {
        "every step, 6 ms": served(),
        "every step, 2 ms": served("note", 2.0),
        "idle, 6 ms": served("window"),
        "never": served("window", 0.0),
    }
    heads = ("waits", "tokens/s of GPU time", "TPOT", "p95 of TTFT", "E2E")
    cells = [
        (name, f"{run.gpu_tokens:,.0f}", seconds(run.tpot), seconds(run.p95), seconds(run.e2e))
        for name, run in runs.items()
    ]
    return [("", *heads[1:]), *cells]


BY_HAND = {"arrival": (0.0, 1.0, 5.0, 6.5), "output": (2, 2, 2, 2), "window": 2.0}
"""Seconds and tokens of four requests that one can follow on paper."""


@lru_cache(maxsize=2)
def by_hand(window: float = BY_HAND["window"]) -> Run:  # type: ignore[assignment]
    """Those four, in steps of one second, behind a window of so many seconds."""
    load = Workload(np.array(BY_HAND["arrival"]), np.ones(4, dtype=int), np.array(BY_HAND["output"]))
    return serve(load, policies.Window(4, window), steptime.PowerLaw(t0=1, c=0, alpha=1))
