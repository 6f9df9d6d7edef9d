"""Four cards, one model: four replicas, two pairs or one four, behind a router, under a load and two promises."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from course.engine.fleet import Fleet
from course.engine.routes import RoundRobin
from course.engine.run import Run
from course.engine.serving import Engine
from course.lessons.lab14 import cards
from course.models import engine_defaults
from course.models.gpus import gpu
from course.policies import Continuous
from course.workload import Workload, lengths

LAYOUTS = {"four replicas": 1, "two pairs": 2, "one four": 4}
"""Cards of each engine."""
REPLICAS, PAIRS, FOUR = LAYOUTS
SLOTS, BUDGET = engine_defaults.batch(gpu(cards.CARD))
PROMPT, ANSWER = 1_024, 256  # tokens on average
REQUESTS = 1_000
TTFT = 0.5  # seconds that are promised
RATE, TPOT_MS = 20, 20.0
PROMISES = (4, 5, 6, 8, 10, 15, 20, 30)  # ms of TPOT


@cache
def load(rate: float, seed: int = 0, requests: int = REQUESTS) -> Workload:
    """A chat: Poisson arrivals, prompts of 1,024 and answers of 256 tokens on average."""
    prompts, answers = lengths.lognormal(PROMPT, 1, 1, 8_192), lengths.lognormal(ANSWER, 1, 1, 1_024)
    return Workload.poisson(rate, requests, prompts, answers, seed=seed)


@cache
def served(
    layout: str, rate: float, seed: int = 0, slots: int = SLOTS, route: Any = None, kind: str = cards.FASTEST
) -> Run:
    """The chat on four cards. route: as a Fleet takes it, one after the other if it is left out."""
    each = LAYOUTS[layout]
    engines = [Engine(Continuous(slots, BUDGET), cards.model(each, kind)) for _ in range(4 // each)]
    return Fleet(engines, route or RoundRobin()).serve(load(rate, seed))


def kept(run: Run, tpot: float) -> float:
    """The share of requests that hold both promises. tpot: seconds."""
    return float(((run.ttft <= TTFT) & ~(run.tpot > tpot)).mean())


@dataclass(frozen=True)
class Four:
    """The three layouts under one load. rate: requests/s. tpot_ms: the promise."""

    rate: float
    tpot_ms: float
    runs: dict[str, Run]

    def share(self, layout: str) -> float:
        """Of requests that hold both promises."""
        return kept(self.runs[layout], self.tpot_ms / 1e3)

    def median(self, layout: str) -> float:
        """Of TPOT [s]."""
        return float(np.nanmedian(self.runs[layout].tpot))

    def p95(self, layout: str) -> float:
        """Of TPOT [s]."""
        return float(np.nanpercentile(self.runs[layout].tpot, 95))

    def together(self, layout: str) -> float:
        """Sequences in a step of one engine, over time."""
        steps = self.runs[layout].steps
        return float(np.average(steps.running, weights=steps.seconds))

    def best(self) -> str:
        """The layout with the most requests within both promises."""
        return max(LAYOUTS, key=self.share)


def four(rate: float = RATE, tpot_ms: float = TPOT_MS, seed: int = 0) -> Four:
    """The three layouts at so many requests/s, with a promise of so many ms of TPOT."""
    return Four(rate, tpot_ms, {layout: served(layout, rate, seed) for layout in LAYOUTS})


def rows(found: Four) -> list[tuple[str, ...]]:
    """The table beside the figure."""
    return [
        ("", *LAYOUTS),
        ("within both promises", *(f"{found.share(layout):.0%}" for layout in LAYOUTS)),
        ("median TPOT", *(f"{1e3 * found.median(layout):.1f} ms" for layout in LAYOUTS)),
        ("p95 TPOT", *(f"{1e3 * found.p95(layout):.1f} ms" for layout in LAYOUTS)),
        ("sequences in a step", *(f"{found.together(layout):.0f}" for layout in LAYOUTS)),
    ]
