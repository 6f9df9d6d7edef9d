"""The exercises of lab 18: the score from counts, and the order of those who wait."""

from __future__ import annotations

from collections.abc import Mapping

Kept = Mapping[str, int]
Waiting = list[tuple[float, float, int]]
"""(arrival [s], seconds promised to the first token, prompt tokens) of each request that waits, oldest first."""
NEED, HOUR = 0.95, 3_600
SPEED = 20_000  # prompt tokens/s of an engine

COUNTS = [
    [{"chat": 760, "docs": 66}, {"chat": 764, "docs": 66}, 2, 2.5, 21.6],
    [{"chat": 700, "docs": 66}, {"chat": 764, "docs": 66}, 2, 2.5, 21.6],
    [{"chat": 764, "docs": 60}, {"chat": 764, "docs": 66}, 5, 0.75, 24.0],
    [{"chat": 95, "docs": 19}, {"chat": 100, "docs": 20}, 1, 3.5, 36.0],
    [{"chat": 97, "docs": 19}, {"chat": 100, "docs": 20}, 8, 3.5, 7_200.0],
]


def score(kept: Kept, asked: Kept, cards: int, price: float, seconds: float) -> float:
    """Requests within their promise for a dollar, 0 if a class has less than NEED. price: dollars an hour, a card."""
    if min(kept[name] / asked[name] for name in asked) < NEED:
        return 0.0
    return sum(kept.values()) / (cards * price * seconds / HOUR)


def of_all(kept: Kept, asked: Kept, cards: int, price: float, seconds: float) -> float:
    """The share of all requests together is looked at."""
    enough = sum(kept.values()) / sum(asked.values()) >= NEED
    return sum(kept.values()) / (cards * price * seconds / HOUR) if enough else 0.0


def no_floor(kept: Kept, asked: Kept, cards: int, price: float, seconds: float) -> float:
    """No class can fail."""
    return sum(kept.values()) / (cards * price * seconds / HOUR)


def by_the_hour(kept: Kept, asked: Kept, cards: int, price: float, seconds: float) -> float:
    """Seconds are taken for hours."""
    return score(kept, asked, cards, price, seconds) / HOUR


def one_card(kept: Kept, asked: Kept, cards: int, price: float, seconds: float) -> float:
    """One card is paid for."""
    return cards * score(kept, asked, cards, price, seconds)


def everybody(kept: Kept, asked: Kept, cards: int, price: float, seconds: float) -> float:
    """Who was late counts as well."""
    return score(kept, asked, cards, price, seconds) * sum(asked.values()) / sum(kept.values())


def cost(kept: Kept, asked: Kept, cards: int, price: float, seconds: float) -> float:
    """Dollars for a thousand requests within their promise, 0 if a class has less than NEED."""
    found = score(kept, asked, cards, price, seconds)
    return 1_000 / found if found else 0.0


def upside_down(kept: Kept, asked: Kept, cards: int, price: float, seconds: float) -> float:
    """Thousands of requests for a dollar."""
    return score(kept, asked, cards, price, seconds) / 1_000


LINES = [
    [[(0.0, 0.8, 400), (0.1, 6.0, 7_000), (0.3, 0.8, 600)], 0.5],
    [[(0.0, 0.8, 400), (0.1, 6.0, 7_000), (0.3, 0.8, 600)], 1.0],
    [[(0.0, 0.8, 16_000), (0.2, 0.8, 100), (0.2, 0.7, 200)], 0.4],
    [[(0.0, 6.0, 2_000), (1.0, 0.8, 500), (1.2, 0.8, 500), (1.3, 0.1, 100)], 1.85],
]


def order(waiting: Waiting, now: float) -> list[int]:
    """Places in the order of admission: first due first of those who can still make it, then all others likewise."""

    def key(place: int) -> tuple[bool, float]:
        arrival, promised, prompt = waiting[place]
        return now + prompt / SPEED > arrival + promised, arrival + promised

    return sorted(range(len(waiting)), key=key)


def in_order(waiting: Waiting, now: float) -> list[int]:
    """First come, first served."""
    return list(range(len(waiting)))


def first_due(waiting: Waiting, now: float) -> list[int]:
    """Those who are late already go first as well; the solution of the twin."""
    return sorted(range(len(waiting)), key=lambda place: waiting[place][0] + waiting[place][1])


def without_prompt(waiting: Waiting, now: float) -> list[int]:
    """The prompt takes no time."""
    return order([(arrival, promised, 0) for arrival, promised, _ in waiting], now)


def shortest(waiting: Waiting, now: float) -> list[int]:
    """The shortest prompt first."""
    return sorted(range(len(waiting)), key=lambda place: waiting[place][2])


def dropped(waiting: Waiting, now: float) -> list[int]:
    """Who cannot make it is left out."""
    return [place for place in order(waiting, now) if now + waiting[place][2] / SPEED <= sum(waiting[place][:2])]
