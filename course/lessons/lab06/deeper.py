"""The numbers in the texts of lab 06's deeper notebook, and what must hold beside them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from course.lessons.lab06 import draws, give_way
from course.lessons.lab06.over_time import what_steps_held
from course.lessons.lab06.two_orders import FIRST, MIXED, SLOTS, served

SMALL = 512  # tokens a step


def _between(values: list[float], form: str) -> str:
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def facts() -> dict[str, Any]:
    """Every number that the notebook shows; those of several draws as a range."""
    mixed, small = what_steps_held(MIXED), what_steps_held(MIXED, SMALL)
    clear, luck, turned = (draws.compared(rate) for rate in draws.RATES)
    each, late = give_way.every(1), give_way.every(give_way.EVERY[-1])
    waits = {name: [give_way.yielding(name, seed) for seed in give_way.SEEDS] for name in give_way.YIELDING}
    ends = {name: [give_way.giving_way(name, seed) for seed in give_way.SEEDS] for name in give_way.GIVING_WAY}
    short = {name: _between([1e3 * give_way.ttft(run, "short") for run in runs], ".0f") for name, runs in waits.items()}
    e2e = {name: _between([run.e2e.mean() for run in runs], ".1f") for name, runs in ends.items()}
    return {
        "deep_mixed_steps": mixed.of_steps[0], "deep_mixed_time": mixed.of_time[0],
        "deep_small_steps": small.of_steps[0], "deep_small_time": small.of_time[0], "deep_small": SMALL,
        "deep_ratio": mixed.whole_ratio,
        "deep_ratio_least": float(np.nanmin(mixed.ratio)), "deep_ratio_most": float(np.nanmax(mixed.ratio)),
        "deep_prompt_share": 1 / (1 + mixed.whole_ratio),
        "deep_confidence": draws.CONFIDENCE, "deep_draws": len(draws.SEEDS),
        "deep_clear": draws.RATES[0], "deep_luck": draws.RATES[1], "deep_over": draws.RATES[2],
        "deep_clear_paired": clear.paired, "deep_clear_apart": clear.apart,
        "deep_luck_later": int((luck.by_draw > 0).sum()),
        "deep_over_later": draws.turned(), "deep_over_paired": turned.paired,
        "deep_over_apart": turned.apart,
        "deep_few": len(draws.FEW), "deep_wide": draws.WIDE,
        "deep_holds": draws.mean(FIRST, SLOTS, "holds") / draws.mean(MIXED, SLOTS, "holds") - 1,
        "deep_wide_first_ms": 1e3 * draws.mean(FIRST, draws.WIDE, "ttft"),
        "deep_wide_mixed_ms": 1e3 * draws.mean(MIXED, draws.WIDE, "ttft"),
        "deep_every": give_way.EVERY[-1], "deep_late_ttft_ms": 1e3 * late.ttft, "deep_each_ttft_ms": 1e3 * each.ttft,
        "deep_late_p90_ms": 1e3 * give_way.gap_at(late.run, 90),
        "deep_each_p90_ms": 1e3 * give_way.gap_at(each.run, 90),
        "deep_depth": give_way.DEPTH, "deep_long": give_way.LONG, "deep_cap": give_way.CAP, "deep_step": give_way.SMALL,
        "deep_short_order": short[give_way.IN_ORDER], "deep_short_yield": short[give_way.YIELDS],
        "deep_short_cap": short[give_way.CAPPED],
        "deep_long_yield": _between([give_way.ttft(run, "long") for run in waits[give_way.YIELDS]], ".0f"),
        "deep_long_order": _between([give_way.ttft(run, "long") for run in waits[give_way.IN_ORDER]], ".1f"),
        "deep_long_cap": _between([give_way.ttft(run, "long") for run in waits[give_way.CAPPED]], ".1f"),
        "deep_sent_back": _between([int(run.preempted.sum()) for run in waits[give_way.YIELDS]], "d"),
        "deep_seats": give_way.FEW, "deep_busy": give_way.BUSY, "deep_quantum": give_way.QUANTUM,
        "deep_e2e_order": e2e[give_way.IN_ORDER], "deep_e2e_shortest": e2e[give_way.SHORTEST],
        "deep_e2e_left": e2e[give_way.SHORTEST_LEFT], "deep_e2e_levels": e2e[give_way.LEVELS],
        "deep_ttft_levels": _between([run.ttft.mean() for run in ends[give_way.LEVELS]], ".1f"),
        "deep_ttft_order": _between([run.ttft.mean() for run in ends[give_way.IN_ORDER]], ".1f"),
        "deep_again_left": _between([give_way.computed_again(run) for run in ends[give_way.SHORTEST_LEFT]], ".0%"),
    }  # fmt: skip


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    wide = [(served(rule, slots=draws.WIDE, rate=draws.RATES[-1], seed=seed).ttft for rule in (MIXED, FIRST))
            for seed in draws.FEW]  # fmt: skip
    first, small = what_steps_held(FIRST), what_steps_held(FIRST, SMALL)
    clear, luck, _ = (draws.compared(rate) for rate in draws.RATES)
    waits = [[give_way.yielding(name, seed) for name in give_way.YIELDING] for seed in give_way.SEEDS]
    ends = [[give_way.giving_way(name, seed) for name in give_way.GIVING_WAY] for seed in give_way.SEEDS]
    ks = [give_way.every(k) for k in give_way.EVERY]
    return {
        "no step of prompts first is mixed": first.of_steps[0] == small.of_steps[0] == 0,
        "the whole ratio is the traffic's with each knob": all(
            abs(one.whole_ratio / what_steps_held(MIXED).whole_ratio - 1) < 1e-9 for one in (first, small)
        ),
        "where slots suffice each draw says the same": bool((clear.by_draw < 0).all()),
        "at 20 requests/s it turns from draw to draw": bool((luck.by_draw > 0).any() and (luck.by_draw < 0).any()),
        "the first five draws beyond saturation agree, and one later does not": bool(
            (draws.compared(draws.RATES[-1]).by_draw[: len(draws.FEW)] > 0).all() and draws.turned() < len(draws.SEEDS)
        ),
        "with slots for all, prompts first is earlier in each of five draws": all(a > b for a, b in wide),
        "prompts in some steps: later first tokens, gaps as long, calmer typical gaps with 16": (
            all(a.ttft < b.ttft for a, b in pairwise(ks))
            and all(abs(one.gap / ks[0].gap - 1) < 0.02 for one in ks)
            and give_way.gap_at(ks[-1].run, 90) < 0.3 * give_way.gap_at(ks[0].run, 90)
            and ks[-1].itl_p99 > ks[0].itl_p99
        ),
        "long ones that yield wait for tens of seconds, and short ones longer too; the cap helps the short ones": all(
            give_way.ttft(yields, "short") > give_way.ttft(order, "short") > 3 * give_way.ttft(cap, "short")
            and 0.8 < give_way.short_p99(yields) / give_way.short_p99(order) < 1.1
            and give_way.ttft(yields, "long") > 10 * give_way.ttft(order, "long")
            and give_way.ttft(cap, "long") < 1.3 * give_way.ttft(order, "long")
            for order, yields, cap in waits
        ),
        "who gives way computes again: both lose to the plain order, the shortest answer first wins": all(
            short.e2e.mean() < order.e2e.mean() < min(left.e2e.mean(), levels.e2e.mean())
            and levels.ttft.mean() < 0.5 * order.ttft.mean() and left.ttft.mean() > order.ttft.mean()
            for order, short, left, levels in ends
        ),
    }  # fmt: skip
