"""What a step costs an engine that captures its steps in a few sizes: the recorded time of the size, and the host's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from course.engine.step import Step
from course.steptime import Recorded

MEMORIES = (0.025, 0.035, 0.05, 0.07, 0.1, 0.15, 0.2, 0.4)
"""Seconds among which a fit chooses how long a card remembers."""

Size = tuple[int, int, int]
"""(prompt tokens, chunks, decodes) of a captured step."""


@dataclass(frozen=True)
class CaptureSizes:
    """The sizes in which steps are captured.

    tokens: prompt tokens of a step, rounded up to the next of them, above the last to a multiple of it, so that there
    is one for each chunk. chunks: alike.
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
        chunks = _next(chunks, self.chunks)
        return _next(max(tokens, chunks), self.tokens), chunks, -(-decodes // self.decodes) * self.decodes

    def up_to(self, tokens: int, chunks: int, decodes: int) -> list[Size]:
        """All sizes that steps with at most so many run in."""
        every = {self.of(0, 0, n) for n in range(1, decodes + 1)}
        prompts = {self.of(n, c, 0)[:2] for n in range(1, tokens + 1) for c in range(1, min(chunks, n) + 1)}
        beside = {-(-n // self.decodes) * self.decodes for n in range(decodes + 1)}
        return sorted(every | {(*sizes, d) for sizes in prompts for d in beside})


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


def prompt_share(recorded: Recorded, sizes: CaptureSizes, parts: Size, context: int, seconds: float) -> float:
    """The share of a step's recorded seconds that its prompt tokens add to those of the decodes; 0 without any."""
    tokens, _, decodes = parts
    if not tokens:
        return 0.0
    alone = captured_seconds(recorded, sizes, (0, 0, decodes), context, 0) if decodes else 0.0
    return max(0.0, 1 - alone / seconds)


@dataclass
class Warmth:
    """How much of the last `memory` seconds a card computed prompts, between 0 and 1; older seconds fade away.

    A large product draws more power than a card may take for long, so that it lowers its clocks; while it decodes it
    recovers. Time in which nobody is there is not counted, so at low loads a card is colder than this.
    """

    memory: float
    now: float = 0.0

    def add(self, share: float, seconds: float) -> float:
        """The warmth before; then so many seconds pass, of which this share are a prompt's."""
        met, kept = self.now, exp(-seconds / self.memory)
        self.now = kept * met + (1 - kept) * share
        return met


@dataclass(frozen=True)
class Overhead:
    """Seconds that a step takes beside the recorded ones: `step` of each, and more for each decode and each chunk.

    Of a step with prompt tokens also these shares of its recorded seconds: `prompt`, and `warm` times the warmth that
    `memory` makes (see Warmth). Of a step without, `warm_decodes` times the warmth.
    """

    step: float
    decode: float
    chunk: float
    prompt: float = 0.0
    warm: float = 0.0
    warm_decodes: float = 0.0
    memory: float = 0.1

    def __call__(self, decodes: int, chunks: int) -> float:
        """Seconds of a step with so many."""
        return self.step + self.decode * decodes + self.chunk * chunks

    def beside(self, host: Overhead) -> Overhead:
        """This of a card and that of a host together. Raises ValueError for a host that warms up."""
        if host.prompt or host.warm or host.warm_decodes:
            raise ValueError(f"only a card has a warmth, not the host: card.beside(host), not {host!r} as the host")
        both = self.step + host.step, self.decode + host.decode, self.chunk + host.chunk
        return replace(self, step=both[0], decode=both[1], chunk=both[2])


class AsCaptured:
    """A recorded step time as a live executor spends it: in captured sizes, and with an overhead. One for each run.

    With a warmth in the overhead a step takes longer after others with prompts, so steps are asked for in their order.
    """

    def __init__(self, recorded: Recorded, sizes: CaptureSizes, overhead: Overhead) -> None:
        self.recorded, self.sizes, self.overhead = recorded, sizes, overhead
        self._warmth = Warmth(overhead.memory)

    def __call__(self, step: Step) -> float:
        """Seconds of the step."""
        parts = step.prefill_tokens, len(step.prefill_chunks), step.decodes
        overhead, context = self.overhead, step.decode_context
        seconds = captured_seconds(self.recorded, self.sizes, parts, context, step.prefill_pairs)
        found = seconds + overhead(step.decodes, len(step.prefill_chunks))
        warmth = self._warmth.now
        found += seconds * (overhead.prompt + overhead.warm * warmth if parts[0] else overhead.warm_decodes * warmth)
        self._warmth.add(prompt_share(self.recorded, self.sizes, parts, context, seconds), found)
        return found

    def __repr__(self) -> str:
        return f"AsCaptured({self.recorded!r}, {self.overhead!r})"


def host_overhead(parts: Sequence[Size], beside: np.ndarray) -> Overhead:
    """What a program adds to the card's time: the constants that come closest to the seconds `beside` it.

    Least squares, nothing below zero. A step that began late, because its size had to be captured or the machine did
    something else, counts as the 99th percentile.
    """
    from scipy.optimize import lsq_linear

    _, chunks, decodes = np.array(parts, float).T
    matrix = np.stack([np.ones_like(beside), decodes, chunks], axis=1)
    return Overhead(*lsq_linear(matrix, np.minimum(beside, np.percentile(beside, 99)), (0, np.inf)).x.tolist())


def card_overhead(
    parts: Sequence[Size], beyond: np.ndarray, recorded: np.ndarray, shares: np.ndarray, seconds: np.ndarray
) -> Overhead:
    """What steps take beyond the recorded seconds on the card: sequences of unequal length, prompts that share a step.

    And what it loses under many prompts in a row, which only steps of both kinds show. Least squares, nothing but
    `prompt` below zero. shares: of the prompt in each step (`prompt_share`). seconds: from one step to the next.
    """
    from scipy.optimize import lsq_linear

    tokens, chunks, decodes = np.array(parts, float).T
    prompts, others = np.where(tokens > 0, recorded, 0), np.where(tokens > 0, 0, recorded)
    best, least = Overhead(0, 0, 0), np.inf
    for memory in MEMORIES:
        warmth = Warmth(memory)
        met = [warmth.add(share, spent) for share, spent in zip(shares, seconds, strict=True)]
        matrix = np.stack([np.ones_like(beyond), decodes, chunks, prompts, prompts * met, others * met], axis=1)
        found = lsq_linear(matrix, beyond, ([0, 0, 0, -np.inf, 0, 0], np.inf))
        if found.cost < least:
            best, least = replace(Overhead(*found.x.tolist()), memory=memory), found.cost
    return best
