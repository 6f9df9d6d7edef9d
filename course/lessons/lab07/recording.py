"""A step time read off the recorded prompt chunks of lab 07's card."""

from __future__ import annotations

import numpy as np

from course.gpu.recordings import ChunkProfile
from course.steptime import StepTimeModel


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

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        cached = max(pairs / tokens - (tokens + 1) / 2, 0.0) if tokens else 0.0
        base = self._base(tokens + decodes - self.profile.decodes if tokens else 0, cached)
        return base + self.seconds_per_context * decode_context

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
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
