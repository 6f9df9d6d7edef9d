"""Lab 11: what its explorers ask of a result."""

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab11 import batch, card, shapes
from course.lessons.lab11.batch import (
    ALONE,
    BUCKETS,
    EQUAL,
    HALVED,
    MIXES,
    ONE_LONG,
    PACKED,
    RECTANGLE,
    SPREAD,
    SPREADS,
)
from course.lessons.lab11.card import DECODE_STEP, PROMPTS, STEP, OnCard
from course.lessons.lab11.shapes import OneBatch, one_batch

# One batch in three shapes

BATCH: dict[str, Any] = {"mix": SPREAD, "spread": 1.0, "buckets": 4, "edges": HALVED}
FINE = 0.25
"""What the slider of the spread moves by."""
LONG_SPREAD = 1.5


def times_the_tokens(settings: Settings, result: OneBatch) -> float:
    """Tokens of the rectangle over those of the prompts."""
    return result.rectangle.tokens / result.packed.tokens


def saves_half(found: OneBatch) -> bool:
    """Whether the buckets compute half of the rectangle's tokens, or fewer."""
    return 2 * found.in_buckets.tokens <= found.rectangle.tokens


def least_that_saves_half(seed: int = batch.SEED) -> float:
    """The smallest spread of the slider at which the four halved buckets of the start do."""
    stops = [FINE * i for i in range(9)]
    return next(stop for stop in stops if saves_half(one_batch(SPREAD, stop, seed=seed)))


def four_save_half(settings: Settings, result: OneBatch) -> bool:
    """Whether this is that spread."""
    here = result.mix == SPREAD and result.buckets == BATCH["buckets"] and result.edges == HALVED
    return here and result.spread == least_that_saves_half()


def other_draws_differ(settings: Settings, result: OneBatch) -> bool:
    """Whether five draws lie between half and a whole."""
    found = [least_that_saves_half(seed) for seed in range(5)]
    return min(found) == 0.5 and max(found) == 1.0


def as_few_as_halved(settings: Settings, result: OneBatch) -> bool:
    """Whether these equal steps compute no more than four halved buckets do, and one step fewer would."""
    if result.mix != ONE_LONG or result.edges != EQUAL or result.spread != LONG_SPREAD:
        return False
    return result.buckets == fewest_equal_steps()


def fewest_equal_steps(spread: float = LONG_SPREAD) -> int:
    """Equal steps with which one long prompt costs no more than with four halved buckets."""
    most = one_batch(ONE_LONG, spread).in_buckets.tokens
    steps = range(1, shapes.MOST_BUCKETS + 1)
    return next(k for k in steps if one_batch(ONE_LONG, spread, k, EQUAL).in_buckets.tokens <= most)


def halved_reach_down(settings: Settings, result: OneBatch) -> bool:
    """Whether the lowest of four halved edges is lower than that of four equal steps, and pads less."""
    halved, equal = (one_batch(ONE_LONG, LONG_SPREAD, 4, edges) for edges in (HALVED, EQUAL))
    return min(halved.limits) < min(equal.limits) and halved.in_buckets.tokens < equal.in_buckets.tokens


def shape(settings: Settings, result: OneBatch) -> Mapping[str, Any]:
    """What the answers name."""
    halved, equal = (one_batch(result.mix, result.spread, 4, edges) for edges in (HALVED, EQUAL))
    others = [least_that_saves_half(seed) for seed in range(5)]
    return {
        "times": f"{times_the_tokens(settings, result):.1f}",
        "longest": f"{max(result.prompts):,}",
        "mean": f"{result.packed.tokens / len(result.prompts):,.0f}",
        "mix": result.mix[:1].upper() + result.mix[1:],
        "edges": result.edges,
        "spread": f"{result.spread:g}",
        "bucketed": f"{result.in_buckets.tokens:,}",
        "rectangle": f"{result.rectangle.tokens:,}",
        "least": f"{min(others):g}",
        "most": f"{max(others):g}",
        "buckets": result.buckets,
        "halved": f"{halved.in_buckets.tokens:,}",
        "equal": f"{equal.in_buckets.tokens:,}",
        "lowest_halved": f"{min(halved.limits):,}",
        "lowest_equal": f"{min(equal.limits):,}",
        "short": f"{min(result.prompts):,}",
    }


# What a card took

CARD: dict[str, Any] = {"kind": STEP, "mix": SPREAD, "spread": 1.0}
NEAR = 0.1
"""Share by which a step's ratio may differ from that of the tokens and still be called the same."""


def times_packed(settings: Settings, result: OnCard) -> float:
    """Seconds of the rectangle over those of the packed batch."""
    return result.ratio(RECTANGLE)


def loses_least(settings: Settings, result: OnCard) -> bool:
    """Whether one launch for each prompt takes the fewest times the packed attention of all that was recorded."""
    if result.kind != PROMPTS:
        return False
    found = [card.on_the_card(PROMPTS, mix, spread) for mix in MIXES for spread in SPREADS]
    return result.ratio(ALONE) == min(one.ratio(ALONE) for one in found)


def one_long_fills_the_card(settings: Settings, result: OnCard) -> bool:
    """Whether it is one long prompt, which loses much less than equal ones do."""
    return result.mix == ONE_LONG and result.ratio(ALONE) < 0.6 * card.on_the_card(PROMPTS, SPREAD, 0.0).ratio(ALONE)


def buckets_over_packed(settings: Settings, result: OnCard) -> float:
    """Seconds of four steps, one a bucket, over those of the packed one."""
    return result.ratio(BUCKETS)


def decodes_of_the_start(settings: Settings, result: OnCard) -> bool:
    """Whether whole steps of decodes are shown, with the lengths of the start."""
    return result.kind == DECODE_STEP and result.mix == SPREAD and result.spread == CARD["spread"]


def attention_of_the_start(settings: Settings, result: OnCard) -> bool:
    """Whether attention of prompts is shown, with the lengths of the start."""
    return result.kind == PROMPTS and result.mix == SPREAD and result.spread == CARD["spread"]


def buckets_lose_to_padding(settings: Settings, result: OnCard) -> bool:
    """Whether buckets take longer than the rectangle."""
    return result.ratio(BUCKETS) > result.ratio(RECTANGLE)


def between(settings: Settings, result: OnCard) -> bool:
    """Whether attention's ratio lies above that of the tokens and below its square."""
    own, tokens = result.ratio(RECTANGLE), result.tokens(RECTANGLE)
    return tokens < own < tokens**2 and own < result.pairs(RECTANGLE)


def on_card(settings: Settings, result: OnCard) -> Mapping[str, Any]:
    """What the answers name."""
    even = card.on_the_card(PROMPTS, SPREAD, 0.0)
    alone = result.times.get(ALONE)
    return {
        "packed": seconds(result.times[PACKED]),
        "rectangle": seconds(result.times[RECTANGLE]),
        "bucketed": seconds(result.times[BUCKETS]),
        "times": f"{result.ratio(RECTANGLE):.2f}",
        "times_buckets": f"{result.ratio(BUCKETS):.2f}",
        "tokens": f"{result.tokens(RECTANGLE):.2f}",
        "squared": f"{result.tokens(RECTANGLE) ** 2:.0f}",
        "pairs": f"{result.pairs(RECTANGLE):.1f}",
        "alone": "-" if alone is None else f"{alone / result.times[PACKED]:.2f}",
        "alone_even": f"{even.ratio(ALONE):.2f}",
        "longest": f"{max(result.prompts):,}",
        "launches": len(batch.launches(result.prompts, BUCKETS)),
    }
