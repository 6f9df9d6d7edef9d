"""The second scenario of lab 06, deeper: how many draws tell two orders apart, and where the better one turns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import stdtrit

from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab06.two_orders import BADGE, BUDGET, ORDERS, RATE, SLOTS, served

SEEDS = range(8)
RATES = (RATE, 20, 22)  # requests/s: slots suffice, are all taken in some draws, are all taken in each
CONFIDENCE, MOST = 0.95, 1_000
FEW = range(5)
WIDE = 1_024  # slots, the engines' own


def needed(difference: float, spread: float) -> int:
    """The fewest draws whose interval of the mean difference, at CONFIDENCE, leaves out 0; MOST if more.

    Student's t: |difference| > t(n - 1) x spread / sqrt(n).
    """
    n = np.arange(2, MOST + 1)
    enough = np.abs(difference) > stdtrit(n - 1, (1 + CONFIDENCE) / 2) * spread / np.sqrt(n)
    return int(n[enough][0]) if enough.any() else MOST


@dataclass(frozen=True)
class Compared:
    """Mean TTFT of both orders by draw [s]: in each draw both serve the same requests."""

    mixed: np.ndarray
    first: np.ndarray

    @cached_property
    def by_draw(self) -> np.ndarray:
        """Prompts first less mixed, draw by draw."""
        return self.first - self.mixed

    @property
    def difference(self) -> float:
        """Of the means."""
        return float(self.by_draw.mean())

    @property
    def paired(self) -> int:
        """Draws that are needed if each is served in both orders."""
        return needed(self.difference, float(self.by_draw.std(ddof=1)))

    @property
    def apart(self) -> int:
        """And if each order has draws of its own: both spreads count."""
        return needed(self.difference, float(np.sqrt(self.mixed.var(ddof=1) + self.first.var(ddof=1))))


@lru_cache(maxsize=8)
def compared(rate: float) -> Compared:
    """Both orders at a rate, over SEEDS."""
    mixed, first = (np.array([served(rule, BUDGET, SLOTS, rate, seed).ttft for seed in SEEDS]) for rule in ORDERS)
    return Compared(mixed, first)


def told_apart() -> Table:
    """By rate: the difference of the two orders, from which draw to which, and draws needed."""
    rows: list[tuple[str, ...]] = [
        ("requests/s", "mean difference", "least", "most", "draws needed, the same for both", "draws of their own")
    ]
    for rate in RATES:
        one = compared(rate)
        times = (one.difference, one.by_draw.min(), one.by_draw.max())
        counts = (f"{n:,}" if n < MOST else f"over {MOST:,}" for n in (one.paired, one.apart))
        rows.append((f"{rate}", *(f"{1e3 * time:+.0f} ms" for time in times), *counts))
    return table(rows, f"Mean TTFT, prompts first less mixed, {len(SEEDS)} draws, {SLOTS} slots [{BADGE}]")


def mean(rule: str, slots: int, what: str) -> float:
    """Of one column of the second table over FEW draws at the highest rate [s]."""
    runs = [served(rule, BUDGET, slots, RATES[-1], seed) for seed in FEW]
    columns = {
        "ttft": [one.ttft for one in runs],
        "slot": [one.run.queue_wait.mean() for one in runs],
        "holds": [(one.run.response - one.run.admitted).mean() for one in runs],
        "gap": [one.gap for one in runs],
    }
    return float(np.mean(columns[what]))


def slots_taken() -> Table:
    """Beyond saturation: where slots bind, and where they do not."""
    rows: list[tuple[str, ...]] = [
        ("slots", "order", "TTFT, mean", "of it before its first step", "holds its slot", "longest gap")
    ]
    rows += [
        (f"{slots:,}", rule, *(seconds(mean(rule, slots, what)) for what in ("ttft", "slot", "holds", "gap")))
        for slots in (SLOTS, WIDE)
        for rule in ORDERS
    ]
    return table(rows, f"{RATES[-1]} requests/s for half a minute, means of {len(FEW)} draws [{BADGE}]")


def turned() -> int:
    """Draws at the highest rate in which prompts first has the later first tokens."""
    return int((compared(RATES[-1]).by_draw > 0).sum())
