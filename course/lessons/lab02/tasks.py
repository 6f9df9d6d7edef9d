"""Lab 02: what its two explorers ask of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab02.one_curve import LARGEST, OneCurve
from course.lessons.lab02.one_step import CARD, OneStep

# A step on the roofline


def share_in_percent(settings: Settings, found: OneStep) -> float:
    """Of the card's FLOP/s [%]."""
    return 100 * found.share


def mostly_reads(settings: Settings, found: OneStep) -> bool:
    """Whether reading takes a hundred times as long as multiplying."""
    return found.reading > 100 * found.computing


def kv_above_weights(settings: Settings, found: OneStep) -> bool:
    """Whether K and V take longer to read than the weights."""
    return found.reading_kv > found.reading_weights


def multiplies_less_than_weights(settings: Settings, found: OneStep) -> bool:
    """Whether multiplying is shorter than reading the weights."""
    return found.computing < found.reading_weights


def bound_by_compute(settings: Settings, found: OneStep) -> bool:
    """Whether multiplying takes longer than reading."""
    return found.computing > found.reading


def above_the_ridge(settings: Settings, found: OneStep) -> bool:
    """Whether the step has more FLOP a byte than the card needs."""
    return found.intensity > CARD.matrix_flops / CARD.read_bandwidth


def token_is_cheap(settings: Settings, found: OneStep) -> bool:
    """Whether a token of the prompt takes less than a hundredth of reading the weights."""
    return found.recorded / found.prompt < found.reading_weights / 100


def step(settings: Settings, found: OneStep) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "share": f"{100 * found.share:.3g}%",
        "multiplying": seconds(found.computing),
        "reading": seconds(found.reading),
        "weights": seconds(found.reading_weights),
        "kv": seconds(found.reading_kv),
        "decodes": f"{found.decodes:,}",
        "prompt": f"{found.prompt:,}",
        "token": seconds(found.recorded / (found.prompt + found.decodes)),
        "intensity": f"{found.intensity:.3g}",
    }


# A curve and its knee

CHEAP = 0.10  # dollars for a million tokens


def knee(settings: Settings, found: OneCurve) -> float:
    """The batch at which a step takes twice t0."""
    return found.curve.knee


def twice_t0(settings: Settings, found: OneCurve) -> bool:
    """Whether the step at the knee takes twice t0."""
    return abs(float(found.curve.seconds(found.curve.knee)) / found.curve.t0 - 2) < 1e-6


def far_too_long(settings: Settings, found: OneCurve) -> bool:
    """Whether the curve says over twice the recorded step of the largest batch."""
    return found.largest > 2 * found.recorded_largest


def band_is_above(settings: Settings, found: OneCurve) -> bool:
    """Whether even the band is above that step."""
    return float(found.curve.band(LARGEST)[0]) > found.recorded_largest


def is_cheap(settings: Settings, found: OneCurve) -> bool:
    """Whether a million tokens cost less than CHEAP."""
    return found.cost < CHEAP


def mostly_own(settings: Settings, found: OneCurve) -> bool:
    """Whether the sequences brought more than twice t0."""
    return found.step - found.curve.t0 > 2 * found.curve.t0


def curve(settings: Settings, found: OneCurve) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "knee": f"{found.curve.knee:.0f}",
        "twice": seconds(2 * found.curve.t0),
        "most": f"{found.most}",
        "largest": seconds(found.largest),
        "recorded": seconds(found.recorded_largest),
        "low": seconds(float(found.curve.band(LARGEST)[0])),
        "batch": f"{found.batch}",
        "cost": f"{found.cost:.2g}",
        "step": seconds(found.step),
        "own": seconds(found.step - found.curve.t0),
    }
