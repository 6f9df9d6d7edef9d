"""What a card costs an hour, in one dated table of assumed prices, and what tokens then cost.

No price is anybody's offer: what you pay depends on provider, contract and month. Put in your own.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from course.base import settings
from course.models.gpus import gpu

HOUR = 3_600
"""Seconds."""


@dataclass(frozen=True)
class Price:
    """Dollars an hour of one card; as_of: the month; source: "assumed", or who asked it."""

    card: str
    dollars_an_hour: float
    as_of: str
    source: str

    @property
    def badge(self) -> str:
        """The price as a text shows it: "3.5 dollars an hour, assumed 2026-11"."""
        return f"{self.dollars_an_hour:g} dollars an hour, {self.source} {self.as_of}"


@cache
def prices() -> dict[str, Price]:
    """The table by the name of the card."""
    text = (files("course") / "data" / "prices.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {row["card"]: Price(row["card"], float(row["dollars_an_hour"]), row["as_of"], row["source"]) for row in rows}


def price(card: str) -> Price:
    """The price of a card, however its name is written. Raises ValueError for a card that is not in the table."""
    name = gpu(card).name
    if name not in prices():
        raise ValueError(f"there is no price for {name}: the table has {', '.join(prices())}; give your own in dollars "
                         "an hour")  # fmt: skip
    return prices()[name]


def per_hour(card: str) -> float:
    """Dollars an hour of one card, as assumed. ValueError as `price`."""
    return price(card).dollars_an_hour


def per_million(tokens_per_second: float, dollars_an_hour: float, cards: int = 1) -> float:
    """Dollars for a million tokens. tokens_per_second: of all the cards together; dollars_an_hour: of one card.

    Raises ValueError for a rate of 0 tokens/s, a price below 0 and less than one card.
    """
    rate = settings.real("tokens_per_second", tokens_per_second, above=0)
    dollars = settings.real("dollars_an_hour", dollars_an_hour, low=0, high=1e9)
    return settings.whole("cards", cards, high=10**6) * dollars / HOUR / rate * 1e6
