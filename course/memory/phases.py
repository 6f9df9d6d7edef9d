"""Blocks of those that decode, counted without touching any of them."""

from collections.abc import Iterator
from itertools import cycle, islice


class Phases:
    """How many of those that decode need a block in which step.

    A request that decodes computes a token in each step, so it needs a new block once in `block_size` steps, always at
    the same phase. A count of decodes by phase says what any step needs.

    step: the number of the coming step. counts: decodes that need a block when step % block_size is this.
    """

    __slots__ = ("block_size", "counts", "decodes", "step")

    def __init__(self, block_size: int):
        self.block_size, self.counts = block_size, [0] * block_size
        self.step = self.decodes = 0

    @property
    def due(self) -> int:
        """Blocks that the decodes take in the coming step."""
        return self.counts[self.step % self.block_size]

    def decode(self, computed: int) -> None:
        """From the coming step on a request with so many tokens in the cache computes one more in each."""
        self.decodes += 1
        self.counts[(self.step - computed) % self.block_size] += 1

    def pause(self, computed: int) -> None:
        """From the coming step on one of those that decode does not; so many of its tokens are in the cache now."""
        self.decodes -= 1
        self.counts[(self.step - computed) % self.block_size] -= 1

    def steps_left(self, free: float, limit: int) -> int:
        """How many of the next `limit` steps of decodes alone `free` blocks last for."""
        size, counts, step = self.block_size, self.counts, self.step
        if self.decodes * (limit // size + 1) <= free:
            return limit
        for taken in range(limit):
            free -= counts[(step + taken) % size]
            if free < 0:
                return taken
        return limit

    def advance(self, steps: int) -> int:
        """Go on by so many steps; the blocks that the decodes take in them."""
        at, size = self.step % self.block_size, self.block_size
        self.step += steps
        if steps == 1:
            return self.counts[at]
        rounds, rest = divmod(steps, size)
        taken = self.decodes * rounds + sum(self.counts[at : at + rest])
        return taken + sum(self.counts[: at + rest - size]) if at + rest > size else taken

    def one_by_one(self, steps: int) -> Iterator[int]:
        """`advance` with the blocks of each step."""
        at = self.step % self.block_size
        self.step += steps
        return islice(cycle(self.counts[at:] + self.counts[:at]), steps)


class NoPhases(Phases):
    """Of a pool in which those that decode need no more blocks."""

    __slots__ = ()

    def decode(self, computed: int) -> None:
        """Nothing is counted."""

    def pause(self, computed: int) -> None:
        """Nothing is counted."""
