"""Layers of two models as two cards took them; pipelines beside them; tokens a joule."""

from __future__ import annotations

from functools import cache

from course.explore.table import Rows
from course.figures.words import seconds
from course.lessons.lab14 import cards
from course.steptime import Sharded, files
from course.steptime.links import two_cards
from course.steptime.sharded import CONTEXT

SMALL, LARGE = "llama-3.1-8b", "llama-3-70b"
NAMES = {SMALL: "8B", LARGE: "70B"}
LAYERS = {SMALL: cards.LAYERS, LARGE: 80}
TOKENS = (1, 128, 2_048)  # the last of a prompt, the others of as many decodes
OURS = ("nccl", "nccl_direct", "one_shot")
"""All-reduces of which whole layers were timed."""


def fastest_us(name: str, tokens: int) -> float:
    """Microseconds of a layer on two cards, with the fastest all-reduce that was timed in it."""
    kinds = {row["all_reduce"] for row in two_cards()["steps"] if row["model"] == name} & set(OURS)
    return min(cards.layer_us(2, tokens, kind, name=name) for kind in kinds)


def speed_up(name: str, tokens: int) -> float:
    """Times as fast as one card."""
    return cards.layer_us(1, tokens, "none", name=name) / fastest_us(name, tokens)


def sums_share(name: str, tokens: int) -> float:
    """Of the layer on two cards, what it takes longer than without its all-reduces."""
    return 1 - cards.layer_us(2, tokens, "none", name=name) / fastest_us(name, tokens)


def speed_ups() -> Rows:
    """What was measured: layers whole and on two cards."""
    table: list[tuple[str, ...]] = [("", *(f"{tokens:,} token{'s' * (tokens > 1)}" for tokens in TOKENS))]
    for name, short in NAMES.items():
        alone = [cards.layer_us(1, tokens, "none", name=name) for tokens in TOKENS]
        table += [
            (f"{short}, a layer on one card", *(seconds(us / 1e6) for us in alone)),
            (f"{short}, on two", *(seconds(fastest_us(name, tokens) / 1e6) for tokens in TOKENS)),
            (f"{short}, times as fast", *(f"{speed_up(name, tokens):.2f}" for tokens in TOKENS)),
            (f"{short}, of it all-reduces", *(f"{sums_share(name, tokens):.0%}" for tokens in TOKENS)),
            (f"{short}, all {LAYERS[name]} layers on two",
             *(seconds(LAYERS[name] * fastest_us(name, tokens) / 1e6) for tokens in TOKENS)),
        ]  # fmt: skip
    return tuple(table)


# Stages

SHAPES = {"one card": (1, 1), "TP2": (2, 1), "PP2": (1, 2), "TP4": (4, 1), "TP2 x PP2": (2, 2), "PP4": (1, 4)}
BATCHES = (1, 16, 64, 256)


@cache
def step(shape: str, batch: int) -> float:
    """Seconds of a step of the 8B on H200s, cards.CONTEXT tokens each."""
    return Sharded(cards.RECORDING, *SHAPES[shape]).seconds(batch, cards.CONTEXT * batch, 0, 0, 0)


def stages() -> Rows:
    """A step of each shape by the batch."""
    return (
        ("", *(f"batch {batch}" for batch in BATCHES)),
        *((shape, *(f"{1e3 * step(shape, batch):.1f} ms" for batch in BATCHES)) for shape in SHAPES),
    )


def bubble(stages: int, micro_batches: int, interleaved: int = 1) -> float:
    """The share of a pipeline's time in which a stage waits, with one round of so many micro-batches.

    interleaved: pieces of each stage, one behind the other (Narayanan et al., "Efficient large-scale language model
    training", 2021).
    """
    waits = (stages - 1) / interleaved
    return waits / (waits + micro_batches)


# Power

JOULES = (1, 16, 64, 256)


@cache
def whole_steps() -> dict[int, tuple[float, float]]:
    """(seconds, watts) of whole steps of the 8B by batch, CONTEXT tokens each: `course profile` on an H200."""
    found = files.read("llama_watts", "h200_watts")
    points = found["points"]
    columns = zip(points["decodes"], points["decode_context"], points["chunk"], points["seconds"], found["watts"],
                  strict=True)  # fmt: skip
    return {batch: (seconds, watts) for batch, context, chunk, seconds, watts in columns
            if batch and not chunk and context == CONTEXT * batch}  # fmt: skip


def step_tokens_a_joule(batch: int) -> float:
    """Of whole steps on one card."""
    seconds, watts = whole_steps()[batch]
    return batch / seconds / watts


def power() -> Rows:
    """Tokens a joule of the 8B: whole steps on one card; its layers on one card and on two, by the watts of all."""
    alone = [cards.tokens_a_joule(1, batch, "none") for batch in JOULES]
    two = [cards.tokens_a_joule(2, batch, "one_shot") for batch in JOULES]
    return (
        ("tokens a joule", *(f"batch {batch}" for batch in JOULES)),
        ("whole steps, our kernels", *(f"{step_tokens_a_joule(batch):.2f}" for batch in JOULES)),
        ("watts of the card", *(f"{whole_steps()[batch][1]:.0f}" for batch in JOULES)),
        ("layers, PyTorch's, one card", *(f"{value:.2f}" for value in alone)),
        ("two cards", *(f"{value:.2f}" for value in two)),
        ("watts of the one", *(f"{cards.watts(1, batch, 'none'):.0f}" for batch in JOULES)),
        ("watts of each of two", *(f"{cards.watts(2, batch, 'one_shot'):.0f}" for batch in JOULES)),
    )
