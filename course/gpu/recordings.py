"""What was recorded on real cards of kernels and of steps with a prompt chunk: arrays, with where they come from.

The files stand in steptime/profiles/. A recording that is a step time is read by `steptime.recorded`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from course.base.settings import quote
from course.steptime import files
from course.steptime.files import Recording

COLUMNS = {
    **dict.fromkeys(("work", "threads", "batch", "chunk", "cached"), np.int64),
    **dict.fromkeys(("seconds", "low", "high", "kernel_seconds", "other_seconds"), np.float64),
    "attention": np.str_,
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
    program launches it, NaN where there is no such recording. provenance: card, driver, versions, date, command.
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
        """The curve over the batch for one setting. Raises ValueError where it was not recorded."""
        here = np.flatnonzero((self.work == work) & (self.threads == threads))
        if not len(here):
            raise ValueError(
                f"{self.name} has nothing for work {quote(work)} and {quote(threads)} threads: "
                f"recorded were work {_list(self.work)} and threads {_list(self.threads)}"
            )
        here = here[np.argsort(self.batch[here])]
        return Curve(self.batch[here], self.seconds[here], self.kernel_seconds[here])


@dataclass(frozen=True)
class ChunkProfile(Recording):
    """Times of steps of one model on one card. Arrays of one entry a measurement.

    chunk: prompt tokens in the step; 0 for decodes alone. cached: tokens of that prompt computed in earlier steps.
    seconds, low, high: median, 10th and 90th percentile of a step. attention: the kernel that was faster;
    other_seconds: the median with the other one. Beside the chunk each step holds `decodes` decodes that attend to
    `decode_context` tokens in all. provenance: card, driver, versions, date, command.
    """

    name: str
    model: str
    decodes: int
    decode_context: int
    chunk: np.ndarray
    cached: np.ndarray
    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    attention: np.ndarray
    other_seconds: np.ndarray
    provenance: Mapping[str, Any]

    @cached_property
    def lines(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """For each chunk size, which grow, the cached tokens and the seconds of its steps."""
        found = {}
        for chunk in np.unique(self.chunk).tolist():
            here = np.flatnonzero(self.chunk == chunk)
            here = here[np.argsort(self.cached[here])]
            found[chunk] = (self.cached[here], self.seconds[here])
        return found

    def steps(self, prompt: int, chunk: int) -> np.ndarray:
        """Seconds of each step that computes a prompt of `prompt` tokens in chunks of `chunk`.

        Between two recorded amounts of cached tokens the time is read off the straight line: attention, the only part
        that depends on them, is linear in them. ValueError unless this chunk was recorded up to the end of the prompt
        and divides it.
        """
        if chunk <= 0 or chunk not in self.lines:
            known = ", ".join(f"{size:,}" for size in self.lines if size)
            raise ValueError(f"{self.name} has no chunk of {quote(chunk)}: recorded were {known}")
        cached, seconds = self.lines[chunk]
        starts = np.arange(0, prompt, chunk)
        if prompt % chunk or starts[-1] > cached[-1]:
            raise ValueError(
                f"{self.name} has chunks of {chunk:,} up to {cached[-1]:,} cached tokens: a prompt of {quote(prompt)} "
                "must be whole chunks within that"
            )
        return np.interp(starts, cached, seconds)


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{value}" for value in np.unique(values))


@cache
def decode_step(name: str = "h100_decode_step") -> DecodeProfile:
    """The recording of that name. Raises ValueError with the known names otherwise."""
    found = files.read("decode_step", name)
    return DecodeProfile(name=name, **_points(found), **_facts(found, "empty_seconds"))


@cache
def prefill_chunks(name: str = "h100_prefill_chunks") -> ChunkProfile:
    """The recording of that name. Raises ValueError with the known names otherwise."""
    found = files.read("prefill_chunks", name)
    return ChunkProfile(name=name, **_points(found), **_facts(found, "model", "decodes", "decode_context"))


def _points(found: Mapping[str, Any]) -> dict[str, Any]:
    """Its columns; None becomes NaN where one is of floats."""
    points: dict[str, Any] = {key: np.array(values, dtype=COLUMNS[key]) for key, values in found["points"].items()}
    for values in points.values():
        values.setflags(write=False)
    return points


def _facts(found: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: found[key] for key in (*keys, "provenance")}
