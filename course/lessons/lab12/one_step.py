"""A step of sixteen kernels on a card, in every form: who starts them, and what lies between their ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from course.lessons.lab12.on_device import FORMS, LAUNCHES, PERSISTENT
from course.lessons.lab12.recorded import NAMES, recording

WORKS = (1_024, 4_096, 16_384, 65_536, 262_144)
"""Terms of the note's kernel, the stops of the slider."""


@dataclass(frozen=True)
class OneStep:
    """One step.

    calls, kernels: (beginning, length) [us], as a profiler saw them. wall: microseconds from the first call until the
    program knows that the last kernel is done, by its own clock, without a profiler.
    """

    form: str
    work: int
    calls: tuple[tuple[float, float], ...]
    kernels: tuple[tuple[float, float], ...]
    wall: float

    @property
    def kernel(self) -> float:
        """Microseconds of one kernel that has the card to itself: the median of those that are launched."""
        return float(np.median([length for _, length in recording().trace(LAUNCHES, self.work)[1]]))

    @property
    def every(self) -> float:
        """Microseconds from the end of one kernel to the end of the next, the median; of the persistent one, a turn."""
        if self.form == PERSISTENT:
            return 1e6 * recording().each(PERSISTENT, self.work)
        return float(np.median(np.diff(np.array(self.kernels).sum(1))))

    @property
    def span(self) -> float:
        """Microseconds from the first call to the end of the last kernel."""
        return max(begin + length for begin, length in self.kernels)

    @property
    def busy(self) -> float:
        """The share of the time between two ends in which a kernel computes."""
        return min(1.0, self.kernel / self.every)


def one_step(form: str, work: int) -> OneStep:
    """The recorded step of this form, with kernels of this size."""
    calls, kernels = (tuple((begin, length) for begin, length in rows) for rows in recording().trace(form, work))
    return OneStep(form, work, calls, kernels, 1e6 * recording().toy(form, work).wall)


def shortest(work: int) -> str:
    """The form with the shortest step."""
    return min(FORMS, key=lambda form: one_step(form, work).wall)


def rows(found: OneStep) -> list[tuple[str, ...]]:
    """What the table shows."""
    return [
        ("", NAMES[found.form]),
        ("step, by the program's clock", f"{found.wall:.0f} µs"),
        ("one kernel, alone", f"{found.kernel:.1f} µs"),
        ("from end to end of two", f"{found.every:.1f} µs"),
    ]
