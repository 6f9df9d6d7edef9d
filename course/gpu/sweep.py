"""Steps of a fixed batch: what batching gains if no request has to wait for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course.gpu.ops.decode_step import DecodeStep
from course.gpu.timing import Timing


@dataclass(frozen=True)
class FixedBatch:
    """One batch size: times of a step and of a launch that does nothing, and what follows from them."""

    batch: int
    step: Timing
    empty: Timing

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second of step time: one for each sequence and step."""
        return self.batch / self.step.seconds


def fixed_batches(
    step: DecodeStep, batches: Sequence[int], *, launches: int = 200, max_seconds: float = 1.0
) -> list[FixedBatch]:
    """Time a step of each batch size, and an empty launch of the same size (see `gpu.measure`)."""
    return [
        FixedBatch(
            batch,
            step.time(batch, launches=launches, max_seconds=max_seconds, warm=10),
            step.time_empty(batch, launches=launches, max_seconds=max_seconds / 4, warm=10),
        )
        for batch in batches
    ]
