"""The numbers in the texts of lab 11, counted or recorded, and what must hold beside them."""

from __future__ import annotations

from typing import Any

from course.lessons.lab11 import batch, card, decision, reach, sketch, tasks, tenant
from course.lessons.lab11.batch import BUCKETS, MEAN, ONE_LONG, PACKED, RECTANGLE, REQUESTS, SPREAD, SPREADS
from course.lessons.lab11.card import DECODE_STEP, DECODES, PROMPTS, STEP
from course.lessons.lab11.shapes import MODEL, PAIR, PRODUCTS, one_batch

WASTE, WASTE_TWIN = (120, 400, 680), (64, 512, 960)
"""Exercise 1 and its twin: tokens of three prompts."""
HAND = (100, 300)
"""The worked example."""
LONGER = 1_024
"""Tokens of each context, in which one long one matters less."""
SCORE_BYTES = 2
"""Of a stored score."""
GIVEN = (REQUESTS, MEAN, decision.SIZES[-2], decision.MULTIPLE, tenant.FROM)


def padding(lengths: tuple[int, ...]) -> float:
    """The share of a rectangle's tokens that is padding."""
    return 1 - sum(lengths) / (len(lengths) * max(lengths))


def _waste(lengths: tuple[int, ...], name: str) -> dict[str, Any]:
    """The right share and wrong ones."""
    square = len(lengths) * max(lengths)
    return {
        name: padding(lengths),
        f"{name}_kept": sum(lengths) / square,
        f"{name}_more": square / sum(lengths) - 1,
    }


def _imbalance(mean: int) -> float:
    """Attention of decodes with one long context, times that with equal ones: the same bytes."""
    one, other = (card.recording().at(DECODES, *how, mean) for how in ((ONE_LONG, SPREADS[-1]), (SPREAD, 0.0)))
    return one.times[PACKED] / other.times[PACKED]


def _deeper() -> dict[str, Any]:
    """Where the second cache ends, and scattered pieces."""
    found = reach.recording()
    speeds = dict(zip(found.again, [0.0, *(speed / 1e12 for _, speed in found.marginal())], strict=True))
    near, begin, end, far = 8, 16, 24, max(found.again)
    return {
        "launch_us": 1e6 * (2 * found.seconds(1) - found.seconds(2)), "near_mib": near, "near_speed": speeds[near],
        "cliff_from": begin, "cliff_to": end, "cliff_speed": speeds[end], "far_speed": speeds[far],
        "near_us": 1e6 * found.seconds(near), "cliff_us": 1e6 * found.seconds(end),
        "weights_gb": MODEL.step_weight_bytes / 1e9, "apart": max(abs(one - 1) for one in found.apart()),
        "piece_kib": 16 * MODEL.head_dim * MODEL.kv_bytes_per_element / 1_024,
        "table_gib": max(found.scattered) / 1_024, "smallest": min(min(one) for one in found.scattered.values()),
    }  # fmt: skip


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    step, prompts, many = (card.on_the_card(kind) for kind in (STEP, PROMPTS, DECODE_STEP))
    own, lonely = step.prompts, card.on_the_card(STEP, ONE_LONG)
    total, pairs = sum(own), batch.pairs([own])
    wide = sum(n * n for n in own) / total**2 * REQUESTS  # 1 + the square of the coefficient of variation
    before, now = tenant.hour(seed=1), tenant.hour(tenant.SHARE, seed=1)
    ratios = [sketch.ratio(1.0, seed=seed) for seed in range(card.DRAWS)]
    square, good, top = len(WASTE) * max(WASTE), decision.accepted(), decision.speed_with(decision.best())
    return {
        # Predictions
        "times": step.tokens(RECTANGLE), "times_2": sketch.ratio(SPREADS[-1]), "widest": SPREADS[-1],
        "draws": card.DRAWS, "draws_least": min(ratios), "draws_most": max(ratios),
        "squared": lonely.tokens(RECTANGLE) ** 2,
        "long_times": lonely.tokens(RECTANGLE), "long_step": lonely.ratio(RECTANGLE),
        "packed_ms": 1e3 * lonely.times[PACKED], "rectangle_ms": 1e3 * lonely.times[RECTANGLE],
        # The text
        "total": total, "longest": max(own), "step_times": step.ratio(RECTANGLE),
        "attention_share": PAIR * pairs / (PAIR * pairs + PRODUCTS * total),
        "attention_times": prompts.ratio(RECTANGLE), "pairs_times": prompts.pairs(RECTANGLE),
        "attention_long": card.recording().at(PROMPTS, SPREAD, 1.0, LONGER).ratio(RECTANGLE),
        "square_law": prompts.tokens(RECTANGLE) ** 2 / wide, "cv": (wide - 1) ** 0.5,
        "many_times": many.ratio(RECTANGLE), "many_buckets": many.ratio(BUCKETS),
        "many_packed_ms": 1e3 * many.times[PACKED], "longer": LONGER, "imbalance": _imbalance(MEAN),
        "imbalance_long": _imbalance(LONGER), "mask_times": total**2 / (2 * pairs),
        "scores_gb": SCORE_BYTES * MODEL.num_heads * total**2 / 1e9,
        # Tasks and exercises
        "long_spread": tasks.LONG_SPREAD, "hand": "{} and {}".format(*HAND),
        "waste_lengths": "{}, {} and {}".format(*WASTE), "twin_lengths": "{}, {} and {}".format(*WASTE_TWIN),
        **_waste(WASTE, "waste"), **_waste(WASTE_TWIN, "waste_twin"), "waste_tokens": square - sum(WASTE),
        "waste_times": square / sum(WASTE),
        # The decision
        "decide": decision.best(), "decide_now": decision.speed_now(),
        "decide_gain": top / decision.speed_now(),
        "decide_default": decision.speed(decision.DEFAULT, decision.running()) / decision.speed_now(),
        "decide_from": good[0], "decide_to": good[-1],
        "decide_slots": decision.speed_with_slots(64), "decide_middle": (good[0] + good[-1]) / 2,
        "decide_off": 1 - decision.speed_with(96) / top,
        "decide_high": 1 - decision.speed_with(160) / top,
        **_deeper(),
        # The ticket
        "ticket_share": tenant.SHARE, "ticket_mean": now.mean / before.mean,
        "ticket_larger": tenant.hour(tenant.SHARE, 64, seed=1).speed / now.speed,
        "ticket_fewer": tenant.hour(tenant.SHARE / 2, seed=1).speed / before.speed,
        "ticket_mended": tenant.hour(tenant.SHARE, buckets=4, seed=1).speed / now.speed,
        "ticket_met": 1 - (1 - tenant.SHARE) ** tenant.SIZE, "ticket_long": tenant.LONG,
    }  # fmt: skip


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    step, many = card.on_the_card(STEP, ONE_LONG), card.on_the_card(DECODE_STEP)
    ratio, times = step.ratio(RECTANGLE), step.tokens(RECTANGLE)
    before, now = tenant.hour(seed=1), tenant.hour(tenant.SHARE, seed=1)
    return {
        "static": "padding",
        "table": "through a block table",
        "step": (abs(ratio / times**2 - 1) < 0.3, abs(ratio / times - 1) < 0.1, abs(ratio - 1) < 0.1),
        "cause": (
            now.mean / before.mean > 1.5,
            now.computed / now.tokens > 1.8 * before.computed / before.tokens,
            PAIR * tenant.LONG / 2 > 0.5 * PRODUCTS,
        ),
        "next": "computed beside sent",
        "repair": (
            tenant.hour(tenant.SHARE, 64, seed=1).speed > now.speed,
            tenant.hour(tenant.SHARE / 2, seed=1).speed > 0.9 * before.speed,
            tenant.hour(tenant.SHARE, buckets=4, seed=1).speed > 0.9 * before.speed,
        ),
        "masks": "nothing",
        "tiles": "tiles between two prompts",
        "decodes": (
            many.ratio(BUCKETS) < many.ratio(RECTANGLE),
            many.ratio(BUCKETS) > 2 > many.ratio(RECTANGLE),
            abs(many.ratio(BUCKETS) / many.ratio(RECTANGLE) - 1) < 0.1,
        ),
        "lognormal": "short ones",
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    found = one_batch()
    return {
        "throughput fell by half": 0.45 < tenant.hour(tenant.SHARE, seed=1).speed / tenant.hour(seed=1).speed < 0.55,
        "the mean prompt grew by about a fifth": 1.15 < tenant.hour(tenant.SHARE).mean / tenant.hour().mean < 1.3,
        "attention is a few percent of a step": PAIR * found.packed.pairs < 0.05 * PRODUCTS * found.packed.tokens,
        "in every draw the step follows the tokens": all(
            abs(one.ratio(RECTANGLE) / one.tokens(RECTANGLE) - 1) < tasks.NEAR for one in card.recording().draws(STEP)
        ),
        "in every draw attention lies above the tokens": all(
            one.tokens(RECTANGLE) < one.ratio(RECTANGLE) < one.tokens(RECTANGLE) ** 2
            for one in card.recording().draws(PROMPTS)
        ),
        "in every draw decodes take less than half of the tokens' ratio": all(
            one.ratio(RECTANGLE) < one.tokens(RECTANGLE) / 2 for one in card.recording().draws(DECODE_STEP)
        ),
        "64 slots give about what there is now": 0.9 < decision.speed_with_slots(64) / decision.speed_now() < 1.1,
    }
