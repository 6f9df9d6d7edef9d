"""A machine small enough to count: it reads ten numbers a second and does 200 operations in the same time."""

from __future__ import annotations

from dataclasses import dataclass

READ, COMPUTE = 10, 200  # numbers, and operations, a second
WEIGHTS, OWN = 20, 10  # numbers: of the model, and K and V of one sequence
BATCHES = (1, 2, 4)


@dataclass(frozen=True)
class Steps:
    """Seconds of a step: to read the weights, K and V of all sequences, and to multiply."""

    batch: int
    weights: float
    kv: float
    computing: float

    @property
    def step(self) -> float:
        """The step: multiplying happens while the weights are read."""
        return max(self.weights, self.computing) + self.kv


def step_of(batch: int) -> Steps:
    """A step of so many sequences: two operations for each weight and sequence."""
    return Steps(batch, WEIGHTS / READ, batch * OWN / READ, batch * 2 * WEIGHTS / COMPUTE)
