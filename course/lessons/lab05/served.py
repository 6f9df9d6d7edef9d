"""One run behind a window, as the card sees it and as its users do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from course.engine.run import Run


@dataclass(frozen=True)
class Served:
    """A run of an engine whose window is `window` seconds. Times are in seconds, tokens those of answers."""

    window: float
    run: Run

    @cached_property
    def computing(self) -> float:
        """Seconds in which the card computes."""
        return float(self.run.steps.seconds.sum())

    @property
    def gpu_tokens(self) -> float:
        """Tokens for each second in which the card computes."""
        return float(self.run.workload.output_tokens.sum()) / self.computing

    @property
    def tokens_per_second(self) -> float:
        """Tokens for each second from the first arrival to the last answer."""
        return float(self.run.workload.output_tokens.sum()) / self.run.makespan

    @property
    def busy(self) -> float:
        """Share of the time in which the card computes."""
        return self.computing / self.run.makespan

    @property
    def batch(self) -> float:
        """Sequences of a step, mean over the steps."""
        return float(self.run.steps.running.mean())

    @property
    def step(self) -> float:
        """Mean seconds of a step."""
        return float(self.run.steps.seconds.mean())

    @property
    def step_of_a_token(self) -> float:
        """Mean seconds of the step that brings a token: a step counts once for each of its sequences."""
        return float(np.average(self.run.steps.seconds, weights=self.run.steps.running))

    @property
    def p95(self) -> float:
        """The p95 of TTFT."""
        return float(np.percentile(self.run.ttft, 95))

    @property
    def ttft(self) -> float:
        """Mean TTFT."""
        return float(self.run.ttft.mean())

    @property
    def e2e(self) -> float:
        """Mean E2E."""
        return float(self.run.e2e.mean())

    @property
    def tpot(self) -> float:
        """Mean TPOT; NaN for answers of one token."""
        found = self.run.tpot
        return float(np.nanmean(found)) if np.isfinite(found).any() else float("nan")

    @cached_property
    def idle(self) -> np.ndarray:
        """For each request, whether it came to an engine that ran no step; shape (requests,)."""
        start, end = self.run.steps.start, self.run.steps.end
        before = np.searchsorted(start, self.run.arrival, side="left") - 1
        return (before < 0) | (end[before] < self.run.arrival)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the run, such as an overload."""
        return self.run.warnings
