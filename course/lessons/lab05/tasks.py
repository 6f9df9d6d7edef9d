"""Lab 05: what its two explorers ask of a result. Settings are searched for, so that they hold for other steps too."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab05 import on_a_card, toy
from course.lessons.lab05.on_a_card import Both
from course.lessons.lab05.served import Served

# A toy service

PROMISE, FINE, ENDLESS = 0.005, 0.5, 1.0  # seconds of p95, ms of a step of the slider, seconds of p95 of an overload
START = {"loop": "note", "window_ms": toy.WINDOW_MS, "rate": toy.RATE, "bmax": toy.SLOTS}


def delivered(settings: Settings, found: Served) -> float:
    """Tokens/s by the users' clock."""
    return found.tokens_per_second


def as_many_as_come(settings: Settings, found: Served) -> bool:
    """Whether those are the tokens that are asked for, within 2%: arrivals are drawn."""
    return abs(found.tokens_per_second / (settings["rate"] * toy.TOKENS) - 1) < 0.02


def longest(settings: Settings, found: Served) -> bool:
    """Whether this is the longest window that keeps the promise, in the loop that waits when idle."""
    if settings["loop"] != "window" or found.p95 > PROMISE or settings["window_ms"] <= 0:
        return False
    longer = {**settings, "window_ms": settings["window_ms"] + FINE}
    return toy.served(**longer).p95 > PROMISE


@lru_cache(maxsize=1)
def kept() -> Settings:
    """That window at the start's rate and batch."""
    windows = [FINE * k for k in range(1, 41)]
    return {
        "loop": "window",
        "window_ms": max(w for w in windows if toy.served("window", w).p95 <= PROMISE),
    }


def window_and_step(settings: Settings, found: Served) -> bool:
    """Whether the p95 is the window and a step of one or two sequences."""
    return 0 < found.p95 - found.window < 2 * toy.POINTS[0][1]


def overloaded(settings: Settings, found: Served) -> bool:
    """Whether the queue grows."""
    return found.p95 > ENDLESS


@lru_cache(maxsize=1)
def too_few() -> Settings:
    """The most slots that overload the loop of the start."""
    return {"bmax": next(bmax for bmax in (8, 4, 2, 1) if toy.served(bmax=bmax).p95 > ENDLESS)}


def card_waits(settings: Settings, found: Served) -> bool:
    """Whether the card computes for less than half of the time although the queue grows."""
    return found.busy < 0.5


def quarter_and_step(settings: Settings, found: Served) -> bool:
    """Whether a quarter of the window and the step of a token make the TPOT, within 0.5%: what three digits show."""
    return abs((found.window / 4 + found.step_of_a_token) / found.tpot - 1) < 0.005


def service(settings: Settings, found: Served) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "window": seconds(found.window),
        "quarter": seconds(found.window / 4),
        "step": seconds(found.step),
        "felt": seconds(found.step_of_a_token),
        "tpot": seconds(found.tpot),
        "p95": seconds(found.p95),
        "rest": seconds(max(found.p95 - found.window, 0.0)),
        "busy": f"{found.busy:.1%}",
        "bmax": f"{settings['bmax']:,}",
        "wall": f"{found.tokens_per_second:,.0f}",
        "gpu": f"{found.gpu_tokens:,.0f}",
    }


# The window on a card

CHEAP, SPARED = 0.05, 0.2  # of the p95 without a window; of all time


def later(settings: Settings, found: Both) -> float:
    """By how many ms the p95 is longer with the window."""
    return 1e3 * found.later


def not_all_of_it(settings: Settings, found: Both) -> bool:
    """Whether that is less than the window."""
    return found.later < found.waits.window


def no_matter(settings: Settings, found: Both) -> bool:
    """Whether the window costs hardly any p95."""
    return found.later < CHEAP * found.never.p95


@lru_cache(maxsize=1)
def busy_enough() -> Settings:
    """The lowest rate at which it does not matter."""
    return {"rate": next(rate for rate in (1.5, 3.0, 6.0, 12.0, 24.0) if no_matter({}, on_a_card.both(rate=rate)))}


def nobody_idle(settings: Settings, found: Both) -> bool:
    """Whether fewer than 2% come to an idle engine."""
    return bool(found.waits.idle.mean() < 0.02)


def spares(settings: Settings, found: Both) -> bool:
    """Whether the window spares a fifth of all time, at answers of one token."""
    return settings["work"] == on_a_card.ONE and found.spared > SPARED


@lru_cache(maxsize=1)
def one_token() -> Settings:
    """The lowest rate at which it does."""
    rates = (12.0, 24.0, 48.0, 96.0)
    found = next(r for r in rates if on_a_card.both(on_a_card.ONE, r).spared > SPARED)
    return {"work": on_a_card.ONE, "rate": found}


def users_pay(settings: Settings, found: Both) -> bool:
    """Whether the p95 more than doubles."""
    return found.waits.p95 > 2 * found.never.p95


def card(settings: Settings, found: Both) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "rate": f"{settings['rate']:g}",
        "window": seconds(found.waits.window),
        "later": seconds(max(found.later, 0.0)),
        "p95": seconds(found.waits.p95),
        "never": seconds(found.never.p95),
        "idle": f"{found.waits.idle.mean():.0%}",
        "busy": f"{found.waits.busy:.1%}",
        "before": f"{found.never.busy:.1%}",
    }
