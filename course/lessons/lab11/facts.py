"""The numbers in the texts of lab 11, counted or recorded, and what must hold beside them."""

from __future__ import annotations

from typing import Any

from course.lessons.lab11 import batch, card, decision, pack, sketch, tasks, tenant
from course.lessons.lab11.batch import ALONE, BUCKETS, MEAN, ONE_LONG, PACKED, RECTANGLE, REQUESTS, SPREAD
from course.lessons.lab11.card import DECODE_STEP, DECODES, PROMPTS, STEP
from course.lessons.lab11.shapes import MODEL, PAIR, PRODUCTS, one_batch

WASTE, WASTE_TWIN = (120, 400, 680), (64, 512, 960)
"""Exercise 1 and its twin: tokens of three prompts."""
HAND = (100, 300)
"""The worked example."""
EDGE_EXAMPLE = (100, 120, 900)
SCORE_BYTES = 2
"""Of a stored score."""
GIVEN = (REQUESTS, MEAN, tasks.LONG_SPREAD, 5)


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
        f"{name}_times": square / sum(lengths),
        f"{name}_tokens": square - sum(lengths),
    }


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    step, prompts, decodes, many = (card.on_the_card(kind) for kind in (STEP, PROMPTS, DECODES, DECODE_STEP))
    own, lonely = step.prompts, card.on_the_card(STEP, ONE_LONG)
    total = sum(own)
    even, long = card.on_the_card(PROMPTS, SPREAD, 0.0), card.on_the_card(PROMPTS, ONE_LONG, 2.0)
    even_decodes, long_decodes = card.on_the_card(DECODES, SPREAD, 0.0), card.on_the_card(DECODES, ONE_LONG, 2.0)
    far = [card.recording().at(DECODES, mix, spread, 1_024) for mix, spread in ((SPREAD, 0.0), (ONE_LONG, 2.0))]
    drawn = card.recording().draws(STEP)
    wide = sum(n * n for n in own) / total**2 * REQUESTS  # 1 + the square of the coefficient of variation
    before, now = tenant.hour(seed=1), tenant.hour(tenant.SHARE, seed=1)
    ratios = [sketch.ratio(1.0, seed=seed) for seed in range(5)]
    lengths, good = [f"{n:,}" for n in EDGE_EXAMPLE], decision.accepted()
    return {
        # Predictions
        "times": step.tokens(RECTANGLE), "times_2": sketch.ratio(2.0), "draws_least": min(ratios),
        "draws_most": max(ratios), "squared": lonely.tokens(RECTANGLE) ** 2, "step_times": step.ratio(RECTANGLE),
        "long_times": lonely.tokens(RECTANGLE), "long_step": lonely.ratio(RECTANGLE),
        "longest": max(own), "total": total,
        # The text
        "packed_ms": 1e3 * lonely.times[PACKED], "rectangle_ms": 1e3 * lonely.times[RECTANGLE],
        "attention_share": PAIR * batch.pairs([own]) / (PAIR * batch.pairs([own]) + PRODUCTS * total),
        "attention_times": prompts.ratio(RECTANGLE), "pairs_times": prompts.pairs(RECTANGLE), "cv_squared": wide,
        "square_law": prompts.tokens(RECTANGLE) ** 2 / wide, "cv": (wide - 1) ** 0.5,
        "decodes_times": decodes.ratio(RECTANGLE), "many_times": many.ratio(RECTANGLE),
        "many_buckets": many.ratio(BUCKETS), "many_packed_ms": 1e3 * many.times[PACKED],
        "buckets_times": step.ratio(BUCKETS), "even_alone": even.ratio(ALONE), "long_alone": long.ratio(ALONE),
        "draws": len(drawn), "draws_apart": max(abs(one.ratio(RECTANGLE) / one.tokens(RECTANGLE) - 1) for one in drawn),
        "imbalance_long": far[1].times[PACKED] / far[0].times[PACKED],
        "imbalance": long_decodes.times[PACKED] / even_decodes.times[PACKED],
        "scores_gb": SCORE_BYTES * MODEL.num_heads * total**2 / 1e9, "mask_times": total**2 / (2 * batch.pairs([own])),
        # Tasks and exercises
        "long_spread": tasks.LONG_SPREAD, "hand": "{} and {}".format(*HAND), "hand_padding": padding(HAND),
        "waste_lengths": "{}, {} and {}".format(*WASTE), "twin_lengths": "{}, {} and {}".format(*WASTE_TWIN),
        **_waste(WASTE, "waste"), **_waste(WASTE_TWIN, "waste_twin"),
        "edge_lengths": "{}, {} and {}".format(*lengths), "edge_best": pack.two_edges(EDGE_EXAMPLE)[0],
        "edge_tokens": pack.fewest(EDGE_EXAMPLE), "edge_long": pack.computed(EDGE_EXAMPLE, [100, 900]),
        # The decision
        "decide": decision.best(), "decide_now": decision.speed_now(),
        "decide_gain": decision.speed_with(decision.best()) / decision.speed_now(),
        "decide_slots": decision.speed_with_slots(64), "decide_middle": (good[0] + good[-1]) / 2,
        "decide_off": 1 - decision.speed_with(96) / decision.speed_with(decision.best()),
        "decide_high": 1 - decision.speed_with(160) / decision.speed_with(decision.best()),
        "decide_from": good[0], "decide_to": good[-1],
        # The ticket
        "ticket_share": tenant.SHARE, "ticket_half": now.speed / before.speed, "ticket_mean": now.mean / before.mean,
        "ticket_larger": tenant.hour(tenant.SHARE, 64, seed=1).speed / now.speed,
        "ticket_fewer": tenant.hour(tenant.SHARE / 2, seed=1).speed / before.speed,
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
        "masks": "hides",
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
        "64 slots give about what there is now": 0.9 < decision.speed_with_slots(64) / decision.speed_now() < 1.1,
    }
