"""The ticket of lab 11: a server that pads its batches, before and after a tenant with long prompts came.

Modelled: a rectangle takes as long as its tokens take in the recorded packed step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from course.lessons.lab11 import batch, card

SIZE, BATCHES = 32, 200
"""Prompts of a batch, and batches of an hour that are drawn."""
CV, MEAN, LONG = 0.5, 256, 2_048
SHARE = 0.03
"""Of the prompts that are the tenant's, from its first hour on."""
HOURS = tuple(range(9, 17))
FROM = 13


def tokens_a_second() -> float:
    """What the recorded packed step of prompts computes."""
    found = card.on_the_card(card.STEP)
    return sum(found.prompts) / found.times[batch.PACKED]


@dataclass(frozen=True)
class Hour:
    """tokens: of the prompts. computed: with padding. mean: tokens of a prompt."""

    tokens: int
    computed: int
    mean: float

    @property
    def speed(self) -> float:
        """Prompt tokens/s of a server that always has a batch waiting."""
        return tokens_a_second() * self.tokens / self.computed


@cache
def hour(share: float = 0.0, size: int = SIZE, buckets: int = 1, seed: int = 0) -> Hour:
    """One hour. share: of the tenant's prompts. size: prompts of a batch. buckets: halved ones; 0 packs."""
    rng = np.random.default_rng(seed)
    sigma = np.sqrt(np.log1p(CV**2))
    drawn = np.exp(rng.normal(np.log(MEAN) - sigma**2 / 2, sigma, (BATCHES, size)))
    found = np.maximum(1, np.where(rng.random(drawn.shape) < share, LONG, drawn)).astype(int)
    if not buckets:
        computed = int(found.sum())
    else:
        groups = (batch.padded(row.tolist(), batch.halved(int(row.max()), buckets)) for row in found)
        computed = sum(batch.tokens(group) for group in groups)
    return Hour(int(found.sum()), computed, float(found.mean()))


def day() -> list[Hour]:
    """The hours of the ticket."""
    return [hour(SHARE if now >= FROM else 0.0, seed=now) for now in HOURS]
