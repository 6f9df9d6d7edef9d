"""Steps with a prompt chunk in them, recorded on a real card: a reader, and a step time made of the recording."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

import numpy as np

from course.base.settings import quote
from course.steptime import StepTimeModel, profiles

COLUMNS = {
    **dict.fromkeys(("chunk", "cached"), np.int64),
    **dict.fromkeys(("seconds", "low", "high", "other_seconds"), np.float64),
    "attention": np.str_,
}


@dataclass(frozen=True)
class ChunkProfile(profiles.Recorded):
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

    def step_time(self, seconds_per_context: float) -> RecordedStep:
        """The recording as a step-time model; see RecordedStep."""
        return RecordedStep(self, seconds_per_context)


class RecordedStep(StepTimeModel):
    """Seconds of a step, read off a ChunkProfile between its points.

    Recorded were steps with a fixed number of decodes, over a fixed context. Other numbers count as so many prompt
    tokens more or less, since the matrix products treat both alike; another context adds `seconds_per_context` for each
    token, what reading its K and V takes. Several chunks in a step count as one with as many tokens and query-key
    pairs. Beyond the largest chunk recorded all along a prompt there is nothing to read off: ValueError.
    """

    source = "recorded"

    def __init__(self, profile: ChunkProfile, seconds_per_context: float):
        self.profile, self.seconds_per_context = profile, float(seconds_per_context)
        widest = max(int(cached[-1]) + chunk for chunk, (cached, _) in profile.lines.items() if chunk)
        whole = [(c, line) for c, line in profile.lines.items() if c and int(line[0][-1]) + c == widest]
        self.lines = [(0, profile.lines[0]), *whole]
        self.most = self.lines[-1][0]

    def __repr__(self) -> str:
        return f"RecordedStep({self.profile.name!r})"

    def seconds(self, decodes, decode_context, tokens, pairs, prefill_context):
        cached = max(pairs / tokens - (tokens + 1) / 2, 0.0) if tokens else 0.0
        base = self._base(tokens + decodes - self.profile.decodes if tokens else 0, cached)
        return base + self.seconds_per_context * decode_context

    def decode_line(self, decodes):
        return self._base(0, 0.0), self.seconds_per_context

    def _base(self, size: int, cached: float) -> float:
        """Seconds without the decodes' context, for a chunk of `size` behind `cached` tokens."""
        if size > self.most:
            raise ValueError(
                f"{self.profile.name} has chunks of up to {self.most:,} tokens, and a step asks for {size:,}: lower "
                "max_num_batched_tokens"
            )
        size = max(size, 0)
        above = next(i for i, (chunk, _) in enumerate(self.lines) if chunk >= size)
        (low, below), (high, line) = self.lines[max(above - 1, 0)], self.lines[above]
        seconds = _read(line, cached)
        if high > size:
            start = _read(below, cached)
            seconds = start + (size - low) / (high - low) * (seconds - start)
        return seconds - self.seconds_per_context * self.profile.decode_context


def _read(line: tuple[np.ndarray, np.ndarray], cached: float) -> float:
    """Seconds at `cached` tokens, on the straight line through the points around it or, beyond them, the last two."""
    places, seconds = line
    if len(places) == 1:
        return float(seconds[0])
    i = int(np.clip(np.searchsorted(places, cached, side="right") - 1, 0, len(places) - 2))
    slope = (seconds[i + 1] - seconds[i]) / (places[i + 1] - places[i])
    return float(seconds[i] + slope * (cached - places[i]))


@cache
def prefill_chunks(name: str = "h100_prefill_chunks") -> ChunkProfile:
    """The recording of that name. Raises ValueError with the known names otherwise."""
    known = profiles.names("prefill_chunks")
    if name not in known:
        raise ValueError(f"no recording of prompt chunks is called {quote(name)}; there are {', '.join(known)}")
    found = json.loads((resources.files(profiles) / f"{name}.json").read_text(encoding="utf-8"))
    points = {key: np.array(values, dtype=COLUMNS[key]) for key, values in found["points"].items()}
    for values in points.values():
        values.setflags(write=False)
    facts = {key: found[key] for key in ("model", "decodes", "decode_context", "provenance")}
    return ChunkProfile(name=name, **points, **facts)
