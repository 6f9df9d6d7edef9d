"""The first scenario of lab 09, deeper: pieces that are reserved, where they go, compaction, and what to watch."""

from __future__ import annotations

from functools import cache

import numpy as np

from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab09 import pool
from course.lessons.lab09.pool import BLOCK, MAX, PAGED, POW2, SPEC, STEP, TOKENS, TRUE, Served
from course.models.gpus import gpu

BANDWIDTH = gpu("H200").read_bandwidth  # bytes/s of the card's memory
MOMENTS = (5.0, 10.0, 20.0)  # seconds after the start
FIRST, TOGETHER = "first fit", "pushed together"
WAYS = (
    (MAX, ""),
    (POW2, FIRST),
    (POW2, ""),
    (POW2, TOGETHER),
    (TRUE, FIRST),
    (TRUE, ""),
    (TRUE, TOGETHER),
    (PAGED, ""),
)
"""What is reserved, and whether a piece goes into the first hole that holds it, or pieces are pushed together."""


def move_seconds() -> float:
    """Seconds to move the K and V of one token within the card: read once and written once."""
    return 2 * SPEC.kv_bytes_per_token / BANDWIDTH


@cache
def handed_out(how: str, also: str = "", seed: int = 0) -> Served:
    """The thousand questions of the lab. also: FIRST or TOGETHER, of pieces; best fit where they stay is neither."""
    seconds_each = move_seconds() if also == TOGETHER else None
    return pool.placed(how, seed=seed, compaction=seconds_each, fit="first" if also == FIRST else "best")


def holes(one: Served) -> float:
    """Share of the pool that is free while somebody waits."""
    return 1 - one.mean(one.taken) / TOKENS


@cache
def compaction_seconds(how: str = TRUE, seed: int = 0) -> float:
    """What pushing together took in all: the run against one in which it takes no time."""
    free = pool.placed(how, seed=seed, compaction=0.0)
    return handed_out(how, TOGETHER, seed).run.makespan - free.run.makespan


def rivals() -> Table:
    """Pieces of three sizes, by first fit, best fit and with compaction, and blocks."""
    rows: list[tuple[str, ...]] = [("", "running", "empty in pieces", "free in holes", "holding tokens", "output")]
    for how, also in WAYS:
        one = handed_out(how, also)
        inside = one.mean(one.taken - one.held) / TOKENS
        shares = (f"{share:.0%}" for share in (inside, holes(one), one.used))
        name = f"{how}, {also}" if also else how
        rows.append((name, f"{one.running:.0f}", *shares, f"{one.tokens_per_second:,.0f} tokens/s"))
    return table(rows, f"A thousand questions, {TOKENS:,} tokens, shares of the pool [{STEP.simulated}]")


def watched(one: Served, moment: float) -> tuple[float, float, float]:
    """At a moment: bytes in use, tokens free, and requests that lost their blocks in the five seconds before."""
    steps = one.run.steps
    k = int(np.searchsorted(steps.end, moment))
    recent = (steps.end > moment - MOMENTS[0]) & (steps.end <= moment)
    taken = float(one.taken[k])
    return taken * SPEC.kv_bytes_per_token, TOKENS - taken, float(steps.preemptions[recent].sum()) / MOMENTS[0]


def telemetry() -> Table:
    """What the notes ask to be watched, in blocks and in pieces of the true length."""
    heads = ("", "after", "KV bytes in use", "free", "free, but in holes", "preemptions")
    rows: list[tuple[str, ...]] = [heads]
    for how in (PAGED, TRUE):
        for moment in MOMENTS:
            used, free, lost = watched(handed_out(how), moment)
            debt = 0.0 if how == PAGED else free  # whatever is free while somebody waits that it does not suffice for
            rows.append(
                (how, seconds(moment), f"{used / 1e9:.2f} GB", f"{free:,.0f} tokens", f"{debt:,.0f} tokens",
                 f"{lost:.1f}/s")
            )  # fmt: skip
    return table(rows, f"Blocks of {BLOCK} tokens, and pieces [{STEP.simulated}]")
