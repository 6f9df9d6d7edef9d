"""Bandwidth against FLOPs: how long a step reads weights, how long it multiplies, and when the second overtakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course.explore.table import Table, table
from course.lessons.lab00.answer import model
from course.lm.processor import processor
from course.steptime import Roofline

H100 = Roofline("llama-3.1-8b", "H100")


@dataclass(frozen=True)
class Machine:
    """A model on a machine.

    bandwidth: bytes/s that it reads. peak: FLOP/s that it computes. reading: seconds to read the weights once, for a
    step of any number of sequences. computing: seconds of the matrix products for each of them.
    """

    name: str
    bandwidth: float
    peak: float
    reading: float
    computing: float

    @property
    def sequences(self) -> float:
        """Sequences for which the products take as long as the reading."""
        return self.reading / self.computing


def h100() -> Machine:
    """Llama-3.1-8B on an H100, by bandwidth and FLOP/s that were measured on such a card."""
    card = H100.gpu
    reading, computing = H100.weights, H100.per_token + H100.per_logits
    return Machine("H100, 8B model", card.read_bandwidth, card.matrix_flops, reading, computing)


def here() -> Machine:
    """The small language model on this processor, measured now; its weights are read as float32."""
    mind = model()
    card = processor(mind)
    weights = sum(part.size for layer in mind.layers for part in (layer.qkv, layer.output, layer.gate_up, layer.down))
    weights += mind.unembedding.size
    reading, computing = 4 * weights / card.read_bandwidth, 2 * weights / card.matrix_flops
    return Machine("this CPU, small model", card.read_bandwidth, card.matrix_flops, reading, computing)


def side_by_side(machines: Sequence[Machine]) -> Table:
    """The machines side by side."""
    labels = ("reads, GB/s", "computes, GFLOP/s", "weights read once, ms", "products for one sequence, ms",
              "sequences at which both are equal")  # fmt: skip
    columns = [
        (_three(m.bandwidth / 1e9), _three(m.peak / 1e9), _three(1e3 * m.reading), _three(1e3 * m.computing),
         _three(m.sequences))
        for m in machines
    ]  # fmt: skip
    body = zip(labels, *columns, strict=True)
    return table([("", *(m.name for m in machines)), *body], "Recorded on such a card, and measured on this one")


def _three(value: float) -> str:
    """Three significant digits, thousands separated."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"
