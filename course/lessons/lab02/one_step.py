"""One step of Llama-3.1-8B on an H100: bytes to read, FLOPs to compute, the floor that follows, and the recording."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from course import models, steptime
from course.figures.words import seconds
from course.models.gpus import GPU, gpu
from course.steptime import Roofline, Step, files

RECORDING = "h100_llama3_8b"
STEP = steptime.recorded(RECORDING)
MODEL, CARD = models.model("llama-3.1-8b"), gpu("H100")
CONTEXT = 1_024  # tokens
HOST_MS = 1.1
"""What an engine's host added to a step where nothing hid it: docs/benchmarks.md, "A live run"."""
WEIGHTS, KV_TOKEN = MODEL.step_weight_bytes, MODEL.kv_bytes_per_token  # bytes
FLOPS_TOKEN = 2 * (MODEL.layer_parameters + MODEL.head_parameters)
"""Operations of the matrix products for one decode: two for each weight."""


def floor_of(card: GPU | str = CARD) -> Roofline:
    """The roofline without launches, at the rates of the card: what a step can hardly beat.

    Of the H100 they are those of one simple read kernel and one large product; the best probe reads 4% faster.
    """
    return Roofline(MODEL, card, kernels=0)


FLOOR = floor_of()


@cache
def points(context: int, name: str = RECORDING) -> tuple[np.ndarray, np.ndarray]:
    """Batches, which grow, and the recorded seconds of a step of each, over `context` tokens a sequence."""
    found = files.read("llama_step", name)["points"]
    decodes, tokens, chunk, took = (np.array(found[key]) for key in ("decodes", "decode_context", "chunk", "seconds"))
    here = np.flatnonzero((chunk == 0) & (tokens == decodes * context))
    here = here[np.argsort(decodes[here])]
    return decodes[here], took[here]


@dataclass(frozen=True)
class OneStep:
    """A step of decodes over `context` tokens each, beside a prompt of so many tokens (0: none).

    reading_weights, reading_kv, computing, attention: seconds of each at the rates that the card reaches; computing is
    of the matrix products. recorded: seconds of the step, by the card alone. host: seconds that an engine's host adds.
    """

    decodes: int
    context: int
    prompt: int
    reading_weights: float
    reading_kv: float
    computing: float
    attention: float
    recorded: float
    host: float = 0.0

    @property
    def reading(self) -> float:
        """Seconds to read all that must be read."""
        return self.reading_weights + self.reading_kv

    @property
    def floor(self) -> float:
        """The larger of reading the weights and computing the products; then K and V, and a prompt's attention."""
        return max(self.reading_weights, self.computing) + self.reading_kv + self.attention

    @property
    def bytes(self) -> float:
        """Bytes to read."""
        return WEIGHTS + KV_TOKEN * self.decodes * self.context

    @property
    def flops(self) -> float:
        """Operations of the matrix products."""
        return self.computing * CARD.matrix_flops

    @property
    def intensity(self) -> float:
        """FLOPs for each byte read."""
        return self.flops / self.bytes

    @property
    def reached(self) -> float:
        """FLOP/s of the recorded step."""
        return self.flops / self.recorded

    @property
    def share(self) -> float:
        """Of the FLOP/s that a large product reaches on this card."""
        return self.reached / CARD.matrix_flops


def recorded(decodes: int, context: int, prompt: int) -> float:
    """Seconds of a step: of the recorded point where there is one, and otherwise on straight lines between them."""
    batches, took = points(context)
    if not prompt and decodes in batches:
        return float(took[batches == decodes][0])
    return STEP(Step(decodes, decodes * context, ((prompt, 0),) if prompt else ()))


def one_step(decodes: int = 1, context: int = CONTEXT, prompt: int = 0, host_ms: float = 0.0) -> OneStep:
    """The step with these sequences. host_ms: milliseconds that an engine's host adds to it."""
    pairs = prompt * (prompt + 1) // 2
    return OneStep(
        decodes,
        context,
        prompt,
        FLOOR.weights,
        FLOOR.per_context * decodes * context,
        FLOOR.per_token * (decodes + prompt) + FLOOR.per_logits * decodes,
        FLOOR.per_pair * pairs,
        recorded(decodes, context, prompt),
        host_ms / 1e3,
    )


def amount(value: float, unit: str) -> str:
    """Bytes or FLOPs for people: 15.0 GB, 1.07 TB."""
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= 0.9995 * size:
            return f"{float(f'{value / size:.3g}'):.4g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def rows(found: OneStep) -> list[tuple[str, str]]:
    """What is read and computed, how long that takes at best, and what was recorded."""
    kv = KV_TOKEN * found.decodes * found.context
    return [
        ("read weights", f"{amount(WEIGHTS, 'B')}: {seconds(found.reading_weights)}"),
        ("read K and V", f"{amount(kv, 'B')}: {seconds(found.reading_kv)}"),
        ("multiply", f"{amount(found.flops, 'FLOP')}: {seconds(found.computing)}"),
        ("a prompt's attention", seconds(found.attention) if found.attention else "none"),
        ("floor", seconds(found.floor)),
        ("recorded", seconds(found.recorded)),
        ("with the host", seconds(found.recorded + found.host)),
        ("recorded / floor", f"{found.recorded / found.floor:.2f}"),
        ("FLOP for each byte", f"{float(f'{found.intensity:.3g}'):,.4g}"),
        ("share of FLOP/s", f"{100 * found.share:.3g}%"),
    ]
