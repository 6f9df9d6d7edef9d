"""What was recorded on real cards of the decode-step kernel: arrays, with where they come from.

The files stand in steptime/profiles/. A recording that is a step time is read by `steptime.recorded`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from course.base.settings import quote
from course.steptime import files
from course.steptime.files import Recording

COLUMNS = {
    **dict.fromkeys(("work", "threads", "batch"), np.int64),
    **dict.fromkeys(("seconds", "low", "high", "kernel_seconds"), np.float64),
}


@dataclass(frozen=True)
class Curve:
    """Seconds of a step, and of the kernel alone, for each batch size, which grow."""

    batch: np.ndarray
    seconds: np.ndarray
    kernel_seconds: np.ndarray


@dataclass(frozen=True)
class DecodeProfile(Recording):
    """Times of kernels/decode_step.cu on one card, over work, threads and batch. Arrays of one entry a measurement.

    seconds: median of one launch, by events around it. low, high: 10th and 90th percentile. empty_seconds: a launch of
    a kernel that does nothing, timed in the same way. kernel_seconds: a step as a node of a captured graph, where no
    program launches it, NaN if there is no such recording. provenance: card, driver, versions, date, command.
    """

    name: str
    work: np.ndarray
    threads: np.ndarray
    batch: np.ndarray
    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    kernel_seconds: np.ndarray
    empty_seconds: float
    provenance: Mapping[str, Any]

    def at(self, work: int, threads: int) -> Curve:
        """The curve over the batch for one setting. Raises ValueError if it was not recorded."""
        here = np.flatnonzero((self.work == work) & (self.threads == threads))
        if not len(here):
            raise ValueError(
                f"{self.name} has nothing for work {quote(work)} and {quote(threads)} threads: "
                f"the recording has work {_list(self.work)} and threads {_list(self.threads)}"
            )
        here = here[np.argsort(self.batch[here])]
        return Curve(self.batch[here], self.seconds[here], self.kernel_seconds[here])


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{value}" for value in np.unique(values))


@cache
def decode_step(name: str = "h100_decode_step") -> DecodeProfile:
    """The recording of that name. Raises ValueError with the known names otherwise."""
    content = files.read("decode_step", name)
    return DecodeProfile(name=name, **_points(content), **_facts(content, "empty_seconds"))


def _points(content: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a recording as arrays; in those of floats None becomes NaN."""
    points: dict[str, Any] = {key: np.array(values, dtype=COLUMNS[key]) for key, values in content["points"].items()}
    for values in points.values():
        values.setflags(write=False)
    return points


def _facts(content: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: content[key] for key in (*keys, "provenance")}
