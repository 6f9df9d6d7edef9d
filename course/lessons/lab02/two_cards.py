"""The ticket: one model on two cards; the new one multiplies faster and reads more slowly. All of it is theory."""

from __future__ import annotations

from course.lessons.lab02.one_step import MODEL
from course.models import ModelSpec
from course.models.gpus import gpu
from course.steptime import Roofline, Step

OLD, NEW = "A100", "L40S"
BATCHES, PROMPTS = (1, 2, 4, 8, 16, 32), (128, 256, 512, 1_024, 2_048)
CONTEXT, BATCH, PROMPT = 1_024, 8, 1_024  # tokens, sequences, tokens: of the service


def decode(card: str, batch: int = BATCH, model: ModelSpec = MODEL) -> float:
    """Seconds between two tokens of each of so many sequences."""
    return Roofline(model, card)(Step(batch, batch * CONTEXT, ()))


def prefill(card: str, prompt: int = PROMPT) -> float:
    """Seconds of a step with one prompt."""
    return Roofline(MODEL, card)(Step(0, 0, ((prompt, 0),)))


def eight_bits(card: str, batch: int = BATCH) -> float:
    """Seconds of a step of decodes when the weights are stored in 8 bits and multiplied in 16: half the bytes."""
    theory = Roofline(MODEL, card)
    return decode(card, batch) - theory.weights + max(theory.weights / 2, _products(theory, batch))


def _products(theory: Roofline, batch: int) -> float:
    return batch * (theory.per_token + theory.per_logits)


def rates(card: str) -> tuple[float, float]:
    """Bytes/s and FLOP/s of the data sheet."""
    found = gpu(card)
    assert found.peak_bandwidth is not None and found.peak_flops is not None
    return found.peak_bandwidth, found.peak_flops
