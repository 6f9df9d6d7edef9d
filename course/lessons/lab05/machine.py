"""What one machine did with the benchmark, and the four criteria by which it passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, nan

from course.figures.words import seconds
from course.gpu.bench import Settings
from course.lessons.lab05.served import Served

BATCHES = (1, 2, 4, 8, 16)
LONG_MS, SHORT_MS = 6.0, 2.0
"""Windows that the third criterion compares [ms]."""
UNDER, TIMES, DOWN, GAP, FULL = 5.0, 2.0, 0.15, 2e-3, 8
"""What is asked: seconds of a run, times the tokens/s, share of the p95, seconds of a gap, and from which batch on."""


@dataclass(frozen=True)
class Machine:
    """What one machine did. Times in seconds.

    steps: of a fixed batch, by batch. runs: the loop by its window [ms]. took: to compile and run. gap: the longest
    between two launches. All are empty or NaN where nothing was measured yet.
    """

    where: str = ""
    steps: Mapping[int, float] = field(default_factory=dict)
    runs: Mapping[float, Served] = field(default_factory=dict)
    took: float = nan
    gap: float = nan
    warnings: tuple[str, ...] = ()

    @property
    def gain(self) -> float:
        """How many times the tokens/s of one sequence a full batch of the criterion has; NaN before both are known."""
        first, last = BATCHES[0], BATCHES[-1]
        return last * self.steps[first] / self.steps[last] if {first, last} <= set(self.steps) else nan

    @property
    def fall(self) -> float:
        """By what share of itself the p95 of TTFT falls from the long window to the short one."""
        if not {LONG_MS, SHORT_MS} <= set(self.runs):
            return nan
        return 1 - self.runs[SHORT_MS].p95 / self.runs[LONG_MS].p95

    def passed(self) -> dict[str, tuple[bool, str]]:
        """The four criteria that can be judged: whether each holds, and its number."""
        found = {
            f"run < {UNDER:g} s": (self.took, self.took < UNDER, seconds(self.took)),
            f"{TIMES:g} x tokens/s at {BATCHES[-1]}": (
                self.gain, self.gain >= TIMES, f"{self.gain:.1f} times"),
            f"p95 down {DOWN:.0%}": (
                self.fall, self.fall >= DOWN, f"{self.fall:.0%}" if self.fall >= 0 else f"{-self.fall:.0%} up"),
            f"gaps < {1e3 * GAP:g} ms": (self.gap, self.gap < GAP, seconds(self.gap)),
        }  # fmt: skip
        return {
            name: (holds, text) if isfinite(value) else (False, "-") for name, (value, holds, text) in found.items()
        }


@dataclass(frozen=True)
class Compared:
    """One setting: on the recorded card, and here."""

    asked: Settings
    recorded: Machine
    here: Machine = field(default_factory=Machine)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept something from running here, and an overload."""
        long = self.recorded.runs[self.asked.window_ms].warnings
        return (*self.here.warnings, *long)
