"""The recorded steps of one card, for a card without a recording: by what their data sheets say of the two."""

from __future__ import annotations

from course.engine.step import StepTimeModel
from course.models.gpus import GPU, gpu
from course.steptime.recorded import Recorded


class Scaled(StepTimeModel):
    """Seconds of a step on `card`, from a recording of another one.

    A step of decodes alone reads, and takes as many times as long as the card's bandwidth is lower. One with a chunk
    computes: without the decodes' context it takes as many times as long as the card's FLOP/s are lower, and no less
    than the reading. Rates are those of `models.gpus`, a data sheet's times the same share on both cards: a card that
    reaches another share of its data sheet is missed by that.

    recording: as `recorded` gives it. card: a GPU or its name. Raises ValueError for a card that is not known, the
    recorded one among them.
    """

    sound = True

    def __init__(self, recording: Recorded, card: str | GPU):
        self.recording, self.card = recording, card if isinstance(card, GPU) else gpu(card)
        self.before = gpu(recording.card.removeprefix("NVIDIA "))
        self.bandwidth = self.before.read_bandwidth / self.card.read_bandwidth
        self.compute = self.before.matrix_flops / self.card.matrix_flops

    @property
    def badge(self) -> str:
        """See StepTimeModel."""
        return f"modelled: {self.recording.card} {self.recording.provenance['date']}, scaled to {self.card.name}"

    def beyond(self, **step: int) -> str:
        """See StepTimeModel."""
        return self.recording.beyond(**step)

    def __repr__(self) -> str:
        return f"Scaled({self.recording.name!r}, {self.card.name!r})"

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        base, slope = self.recording.decode_line(decodes)
        reading = self.bandwidth * base
        if tokens:
            whole = self.recording.seconds(decodes, decode_context, tokens, pairs, prefill_context)
            reading = max(reading, self.compute * (whole - slope * decode_context))
        return reading + self.bandwidth * slope * decode_context

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        base, slope = self.recording.decode_line(decodes)
        return self.bandwidth * base, self.bandwidth * slope
