"""The tables of lab 02's optional notebook."""

from __future__ import annotations

from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab02 import two_cards
from course.lessons.lab02.one_step import CONTEXT, FLOOR, KV_TOKEN, STEP, WEIGHTS, floor_of, one_step
from course.models import gpus
from course.steptime import Moe, Roofline, Step

__all__ = ["experts", "floor_and_recording", "ridges"]

CARDS = ("L4", "RTX-4090", "L40S", "A100", "H100", "H200", "B200", "MI300X")
BATCHES = (1, 8, 16, 32, 64, 128, 256)
PROMPTS = (64, 256, 512, 2_048, 8_192)
PROBE = 3.13e12
"""Bytes/s of the fastest read pattern on the card of the recording (docs/benchmarks.md, "A whole step")."""
EXPERTS, DENSE = Moe("qwen3-30b-a3b", "H200"), Roofline("llama-3.1-8b", "H200")
TOKENS = (1, 16, 64, 256)
"""Sequences that decode, each a token a step."""


def ridge(card: str) -> float:
    """FLOP for each byte at which both take as long, by the data sheet: sequences, with weights of 2 bytes."""
    bandwidth, flops = two_cards.rates(card)
    return flops / bandwidth


def even() -> float:
    """Sequences of 1,024 tokens whose K and V are as large as the weights; no card is in it."""
    return WEIGHTS / (KV_TOKEN * CONTEXT)


def cost(model: Roofline, sequences: int) -> float:
    """How many times as long a decode step of so many sequences of 1,024 tokens takes as one of a single one."""
    one, many = (model(Step(each, each * CONTEXT, ())) for each in (1, sequences))
    return many / one


def experts() -> Table:
    """What a mixture of experts reads for more tokens, beside a dense model."""
    rows: list[tuple[str, ...]] = [("", "experts a layer", "weights read", "step / that of one", "dense 8B")]
    for tokens in TOKENS:
        read, name = EXPERTS.bytes_read(tokens), f"{tokens} sequence{'s' * (tokens > 1)}"
        weights = f"{read / 1e9:.1f} GB, {read / EXPERTS.bytes_read(1):.1f}x"
        times = (f"{cost(model, tokens):.2f}" for model in (EXPERTS, DENSE))
        rows.append((name, f"{EXPERTS.touched(tokens):.0f} of {EXPERTS.experts}", weights, *times))
    return table(rows, f"Qwen3-30B-A3B, {CONTEXT:,} tokens each [{EXPERTS.badge}]")


def ridges() -> Table:
    """Cards: where multiplying would be the limit, and the floor of a step of one and of `even` sequences."""
    many = round(even())
    rows: list[tuple[str, ...]] = [("", "TB/s", "TFLOP/s", "FLOP a byte", "step of 1", f"step of {many}", "times")]
    for card in CARDS:
        bandwidth, flops = two_cards.rates(card)
        one, all_of_them = (floor_of(gpus.gpu(card)).seconds(n, n * CONTEXT, 0, 0, 0) for n in (1, many))
        cells = (f"{bandwidth / 1e12:.2f}", f"{flops / 1e12:.0f}", f"{ridge(card):.0f}")
        rows.append((card, *cells, seconds(one), seconds(all_of_them), f"{all_of_them / one:.2f}"))
    return table(rows, "Data sheets, and floors of Llama-3.1-8B at 1,024 tokens [theory]")


def floor_and_recording() -> Table:
    """Recorded over floor: decodes over the batch, and prompts over their length."""
    contexts = (256, 1_024)
    rows: list[tuple[str, ...]] = [("", *(f"{context:,} tokens each" for context in contexts), "", "one prompt")]
    prompts = [(f"{prompt:,} tokens", f"{over_floor(prompt):.2f}") for prompt in PROMPTS] + [("", "")] * 2
    for batch, prompt in zip(BATCHES, prompts, strict=True):
        decodes = [f"{step.recorded / step.floor:.2f}" for step in (one_step(batch, context) for context in contexts)]
        rows.append((f"{batch} decode{'s' * (batch > 1)}", *decodes, *prompt))
    return table(rows, f"Recorded / floor [{STEP.badge}, beside theory]")


def over_floor(tokens: int) -> float:
    """Recorded over floor of a step with one prompt and nothing else."""
    pairs = tokens * (tokens + 1) // 2
    return STEP.seconds(0, 0, tokens, pairs, 0) / FLOOR.seconds(0, 0, tokens, pairs, 0)
