"""What a step costs an engine that captures its steps in a few sizes: the recorded time of the size, and the host's."""

from __future__ import annotations

from dataclasses import dataclass

from course.engine.step import Step
from course.steptime import Recorded

Size = tuple[int, int, int]
"""(prompt tokens, chunks, decodes) of a captured step."""


@dataclass(frozen=True)
class CaptureSizes:
    """The sizes in which steps are captured.

    tokens: prompt tokens of a step, rounded up to the next of them, above the last to a multiple of it. chunks: alike.
    decodes: beside prompts, and above `alone`, rounded up to a multiple of this; fewer alone are captured as they are.
    """

    tokens: tuple[int, ...] = (*range(64, 513, 64), *range(768, 2_049, 256))
    chunks: tuple[int, ...] = (1, 4)
    decodes: int = 8
    alone: int = 32

    def of(self, tokens: int, chunks: int, decodes: int) -> Size:
        """The size that a step with so many runs in."""
        if not chunks and decodes <= self.alone:
            return 0, 0, decodes
        if not chunks:
            return 0, 0, -(-decodes // self.decodes) * self.decodes
        return _next(tokens, self.tokens), _next(chunks, self.chunks), -(-decodes // self.decodes) * self.decodes

    def up_to(self, tokens: int, chunks: int, decodes: int) -> list[Size]:
        """All sizes that steps with at most so many run in."""
        every = {self.of(0, 0, n) for n in range(1, decodes + 1)}
        sizes = {_next(n, self.tokens) for n in range(1, tokens + 1)}
        groups = {_next(n, self.chunks) for n in range(1, chunks + 1)}
        beside = {-(-n // self.decodes) * self.decodes for n in range(decodes + 1)}
        return sorted(every | {(n, c, d) for n in sizes for c in groups for d in beside if c <= n})


def _next(number: int, steps: tuple[int, ...]) -> int:
    return next((step for step in steps if step >= number), -(-number // steps[-1]) * steps[-1])


def captured_seconds(recorded: Recorded, sizes: CaptureSizes, parts: Size, context: int, pairs: int) -> float:
    """What a recording says of a step in its captured size.

    parts: prompt tokens, chunks, decodes. context: tokens that the decodes attend to. pairs: of the
    chunks, query and key.
    """
    size = sizes.of(*parts)
    more = size[2] - parts[2]  # padded decodes, each of which attends to itself
    return recorded.seconds(size[2], context + more, size[0], pairs, 0)


@dataclass(frozen=True)
class Overhead:
    """Seconds that a step takes beside the card's: `step` of each, and more for each decode and each chunk."""

    step: float
    decode: float
    chunk: float

    def __call__(self, decodes: int, chunks: int) -> float:
        """Seconds of a step with so many."""
        return self.step + self.decode * decodes + self.chunk * chunks


class AsCaptured:
    """A recorded step time as a live executor spends it: in captured sizes, and with the host's overhead."""

    def __init__(self, recorded: Recorded, sizes: CaptureSizes, overhead: Overhead) -> None:
        self.recorded, self.sizes, self.overhead = recorded, sizes, overhead

    def __call__(self, step: Step) -> float:
        """Seconds of the step."""
        parts = step.prefill_tokens, len(step.prefill_chunks), step.decodes
        seconds = captured_seconds(self.recorded, self.sizes, parts, step.decode_context, step.prefill_pairs)
        return seconds + self.overhead(step.decodes, len(step.prefill_chunks))

    def __repr__(self) -> str:
        return f"AsCaptured({self.recorded!r}, {self.overhead!r})"
