"""The numbers in the texts of lab 09's deeper notebook, and what must hold beside them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from course.lessons.lab09 import copies, pieces, pool, sessions
from course.lessons.lab09.pieces import FIRST, PAGED, POW2, TOGETHER, TRUE, handed_out, holes
from course.lessons.lab09.pool import SPEC, STEP, TOKENS
from course.steptime import Step

SEEDS = copies.SEEDS
SINKS, RECENT, LONG = 4, 2_044, 20_000
"""Tokens: the first that are kept, the latest that are kept, and a sequence."""
CHATS, DOCUMENTS = "the lab's questions", "prompts of 6,000"
BEST, CALM = 0.05, 0.3  # watermarks


def _between(values: Sequence[float], form: str) -> str:
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def alone() -> float:
    """Bandwidth [bytes/s] at which one request by itself is copied out and back as fast as computed again."""
    return 2 * SPEC.kv_bytes_per_token * 2_048 / STEP(Step(0, 0, ((2_048, 0),)))


def first_fit(how: str) -> list[float]:
    """How much fewer tokens/s first fit gives than best fit, in each draw."""
    return [
        1 - handed_out(how, FIRST, seed).tokens_per_second / handed_out(how, seed=seed).tokens_per_second
        for seed in SEEDS
    ]


def facts() -> dict[str, Any]:
    """Every number that the notebook shows; those of several draws as a range."""
    true, packed, paged = handed_out(TRUE), handed_out(TRUE, TOGETHER), handed_out(PAGED)
    took, whole = pieces.compaction_seconds(), packed.run.makespan
    most = [sessions.largest(seed) for seed in SEEDS]
    speed, lost, gap = copies.marked(BEST)
    calm = copies.marked(CALM)
    none = copies.marked(0.0)
    small = sessions.paused(TOKENS)
    first = first_fit(POW2) + first_fit(TRUE)
    half = [sessions.beyond_half(seed) for seed in SEEDS]
    return {
        "deep_first_high": max(first), "deep_first_wins": sum(one > 0 for one in first),
        "deep_first_all": len(first), "deep_half": _between(half, ".0%"),
        "deep_holes": holes(true), "deep_packed_holes": holes(packed), "deep_move_s": took, "deep_whole_s": whole,
        "deep_packed_gain": packed.tokens_per_second / true.tokens_per_second - 1,
        "deep_paged_gain": paged.tokens_per_second / packed.tokens_per_second - 1,
        "deep_inside": packed.mean(packed.taken - packed.held) / TOKENS,
        "deep_pow2_inside": (two := handed_out(POW2, TOGETHER)).mean(two.taken - two.held) / TOKENS,
        "deep_free_tokens": pieces.watched(true, pieces.MOMENTS[1])[1], "deep_moment": pieces.MOMENTS[1],
        "deep_paged_lost": pieces.watched(paged, pieces.MOMENTS[1])[2],
        "deep_alone": alone() / 1e9,
        "deep_chats": _between([copies.crossover(CHATS, seed) / 1e9 for seed in SEEDS], ".1f"),
        "deep_documents": _between([copies.crossover(DOCUMENTS, seed) / 1e9 for seed in SEEDS], ".1f"),
        "deep_best": BEST, "deep_calm": CALM,
        "deep_best_speed": _between(speed, ",.0f"), "deep_none_speed": _between(none[0], ",.0f"),
        "deep_best_lost": _between(lost, ",d"), "deep_best_gap": _between(gap, ".1f"),
        "deep_calm_speed": _between(calm[0], ",.0f"),
        "deep_calm_gap_ms": _between([1e3 * one for one in calm[2]], ".0f"),
        "deep_pause": sessions.PAUSE, "deep_turns": sessions.TURNS, "deep_idle": sessions.idle_tokens(),
        "deep_idle_times": sessions.idle_tokens() / TOKENS, "deep_short": sessions.SHORT,
        "deep_found_short": sessions.found(small, 0, sessions.SHORT),
        "deep_found_long": sessions.found(small, sessions.LONG),
        "deep_class_document": _between([one["document"][1] for one in most], ".0%"),
        "deep_class_question": _between([one["question"][1] for one in most], ".0%"),
        "deep_sinks": SINKS, "deep_recent": RECENT, "deep_kept": SINKS + RECENT, "deep_sequence": LONG,
        "deep_fit_all": TOKENS // LONG, "deep_fit_kept": TOKENS // (SINKS + RECENT),
    }  # fmt: skip


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    packs = [
        [handed_out(TRUE, seed=seed), handed_out(TRUE, TOGETHER, seed), handed_out(PAGED, seed=seed)] for seed in SEEDS
    ]
    marks = [[copies.marked(share)[0][seed] for share in copies.MARKS] for seed in SEEDS]
    lost = [[copies.marked(share)[1][seed] for share in copies.MARKS] for seed in SEEDS]
    again, free = (copies.served(CHATS, each) for each in (None, 0.0))
    return {
        "pushing together helps in each draw, and blocks are far ahead": all(
            a.tokens_per_second < 0.97 * b.tokens_per_second < 0.97 * 0.9 * c.tokens_per_second for a, b, c in packs
        ),
        "first fit rarely helps, and costs little": (
            sum(first := first_fit(POW2) + first_fit(TRUE)) > 0 and max(map(abs, first)) < 0.05
        ),
        "and takes little of the time": all(pieces.compaction_seconds(seed=s) < 0.03 * b.run.makespan
                                            for s, (_, b, _) in zip(SEEDS, packs, strict=True)),
        "in pieces nobody is preempted": all(a.preemptions == b.preemptions == 0 for a, b, _ in packs),
        "long prompts cross over about where one request by itself does, and chats later": all(
            abs(copies.crossover(DOCUMENTS, seed) / alone() - 1) < 0.1
            and copies.crossover(DOCUMENTS, seed) < copies.crossover(CHATS, seed) > 1.1 * alone() for seed in SEEDS
        ),
        "the lab's bandwidths lie on both sides": (
            pool.out_of_blocks(bandwidth=12.0).run.makespan > again.makespan
            > pool.out_of_blocks(bandwidth=15.0).run.makespan > free.makespan
        ),
        "0.05 is the best in each draw, 0.3 worse than none": all(
            max(row) == row[copies.MARKS.index(BEST)] and row[-1] < row[0] for row in marks
        ),
        "each step of the watermark leaves fewer preemptions": all(
            all(a >= b for a, b in pairwise(row)) for row in lost
        ),
        "a larger pool finds older sessions": all(
            sessions.found(sessions.paused(a), sessions.LONG) < sessions.found(sessions.paused(b), sessions.LONG)
            for a, b in pairwise(sessions.POOLS)
        ),
        "documents hold more than half at times, and nothing at others, while all fits": all(
            least == 0 and most > 0.5 and sessions.beyond_half(seed) > 0
            for seed in SEEDS for least, most in (sessions.largest(seed)["document"],)
        ),
    }  # fmt: skip
