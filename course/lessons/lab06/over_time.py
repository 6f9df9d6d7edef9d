"""The first scenario of lab 06, deeper: what the steps of a run hold, second by second."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from course.figures.words import seconds
from course.lessons.lab06.two_orders import BUDGET, Served, served

KINDS = ("mixed", "prompts alone", "decodes alone")


@dataclass(frozen=True)
class Composition:
    """What the steps of a run held. A step counts in the second in which it begins."""

    found: Served

    @cached_property
    def kinds(self) -> np.ndarray:
        """Of each step: its place in KINDS."""
        steps = self.found.run.steps
        return np.where(steps.prefill_tokens == 0, 2, np.where(steps.decodes == 0, 1, 0))

    @cached_property
    def whole(self) -> int:
        """Whole seconds until the last arrival: after it the steps only empty the engine."""
        return int(self.found.run.arrival.max())

    def _by_second(self, weights: np.ndarray) -> np.ndarray:
        second = self.found.run.steps.start.astype(int)
        return np.bincount(second, weights=weights, minlength=self.whole)[: self.whole]

    @cached_property
    def busy(self) -> np.ndarray:
        """Seconds of steps of each kind (rows) that begin in each second."""
        return np.array([self._by_second(self.found.run.steps.seconds * (self.kinds == kind)) for kind in range(3)])

    @cached_property
    def ratio(self) -> np.ndarray:
        """Decodes for each prompt token, by second; NaN where no prompt token was computed."""
        steps = self.found.run.steps
        prompts = self._by_second(steps.prefill_tokens)
        return np.where(prompts > 0, self._by_second(steps.decodes) / np.maximum(prompts, 1), np.nan)

    @cached_property
    def whole_ratio(self) -> float:
        """The same of the whole run."""
        steps = self.found.run.steps
        return float(steps.decodes.sum() / steps.prefill_tokens.sum())

    @cached_property
    def of_steps(self) -> tuple[float, ...]:
        """The share of each kind in the steps."""
        return tuple(float((self.kinds == kind).mean()) for kind in range(3))

    @cached_property
    def of_time(self) -> tuple[float, ...]:
        """The share of each kind in the time of the steps."""
        took = self.found.run.steps.seconds
        return tuple(float(took[self.kinds == kind].sum() / took.sum()) for kind in range(3))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the run."""
        return self.found.warnings


def what_steps_held(order: str, max_num_batched_tokens: int = BUDGET, rate: float = 16) -> Composition:
    """The service in one order, with a budget, at a rate."""
    return Composition(served(order, max_num_batched_tokens, rate=float(rate)))


def rows(one: Composition) -> list[tuple[str, str]]:
    """Rows for a table: the kinds by steps and by time, and the ratio."""
    return [
        ("mixed, of the steps", f"{one.of_steps[0]:.0%}"),
        *((f"{kind}, of the time", f"{time:.0%}") for kind, time in zip(KINDS, one.of_time, strict=True)),
        ("decodes for a prompt token", f"{one.whole_ratio:.2f}"),
        ("in one second", f"{np.nanmin(one.ratio):.2f} to {np.nanmax(one.ratio):.2f}"),
        ("mean step", seconds(float(one.found.run.steps.seconds.mean()))),
    ]
