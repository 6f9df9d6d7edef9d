"""What the notebooks of lab 08 call by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from course.exercises import tasks_of
from course.explore import Choice, Explorer, Slider
from course.lessons.lab08 import card_memory, figures, kv_pool, live_words, small_pool, tasks
from course.lessons.lab08.card_memory import ENGINES_OWN
from course.lessons.lab08.reading import reading_explorer
from course.lessons.lab08.small_pool_figure import by_hand
from course.lessons.lab08.tables import two_cards
from course.lessons.lab08.ticket_figure import ticket

__all__ = [
    "four_requests", "full_pool", "how_many_fit", "one_sequence", "one_token", "reading_kv", "ticket_graphs",
    "two_cards", "what_fits", "words_again",
]  # fmt: skip

SEQS: list[Any] = [("the engine's own", ENGINES_OWN), 64, 256, 512, 1_024]
TYPES = [("16 bits", "bfloat16"), ("fp8", "fp8")]


def what_fits() -> Explorer:
    """The memory of a card, line by line, and how many sequences fit into what is left."""
    return Explorer(
        card_memory.fit,
        controls=[
            Choice("model_name", "Model", list(card_memory.DENSE), tasks.CARD["model_name"]),
            Choice("card", "Card", list(card_memory.CARDS), tasks.CARD["card"]),
            Slider("gpu_memory_utilization", "gpu_memory_utilization", 0.5, 0.98, 0.02, 0.9),
            Choice("max_num_seqs", "max_num_seqs", SEQS, ENGINES_OWN),
            Choice("kv_dtype", "K and V in", TYPES, "bfloat16"),
            Slider("max_model_len", "max_model_len", 512, 131_072, 2, tasks.CARD["max_model_len"], "tokens", log=True),
        ],
        figure=figures.card,
        summary=card_memory.short_rows,
        title="What fits on a card",
        badge="theory: sizes from the config, activation and other estimated",
        beside=True,
        **tasks_of("08", "what_fits"),
    )


def how_many_fit() -> Explorer:
    """The whole ledger with its formulas, and how many sequences of each length fit."""
    sizes: list[Any] = [("the engine's own", ENGINES_OWN), 2_048, 4_096, 8_192, 16_384, 32_768]
    return Explorer(
        card_memory.fit,
        controls=[
            Choice("model_name", "Model", list(card_memory.DENSE), "llama-3.1-8b"),
            Choice("card", "Card", list(card_memory.CARDS), "H100"),
            Slider("gpu_memory_utilization", "gpu_memory_utilization", 0.5, 0.98, 0.02, 0.9),
            Choice("max_num_seqs", "max_num_seqs", SEQS, ENGINES_OWN),
            Choice("max_num_batched_tokens", "max_num_batched_tokens", sizes, ENGINES_OWN),
            Choice("kv_dtype", "K and V in", TYPES, "bfloat16"),
            Slider("max_model_len", "max_model_len", 512, 131_072, 2, 4_096, "tokens", log=True),
        ],
        figure=figures.ledger,
        summary=card_memory.fit_rows,
        title="The whole ledger",
        badge="theory: sizes from the config, activation and other estimated",
    )


def full_pool() -> Explorer:
    """The graphs of an operator: blocks in use, who runs and who waits, preemptions."""
    return Explorer(
        kv_pool.hour,
        controls=[
            Slider("rate", "Arrival rate", 0.25, 3.0, 0.25, tasks.POOL["rate"], unit="requests/s"),
            Choice("slots", "Slots (max_num_seqs)", tasks.SLOTS, tasks.POOL["slots"]),
            Choice("kind", "Attention, K and V", [kv_pool.MHA, kv_pool.GQA, kv_pool.FP8], tasks.POOL["kind"]),
        ],
        figure=figures.operator,
        summary=kv_pool.hour_rows,
        title="One RTX 4090, 240 requests",
        beside=True,
        **tasks_of("08", "full_pool"),
    )


def reading_kv() -> Explorer:
    """What reading K and V takes: on the device at hand, beside the recording of a real card."""
    return reading_explorer()


def one_token() -> Explorer:
    """What one token keeps, from the five numbers of the formula."""
    types = [("fp8: 1 byte", 1), ("16 bits: 2 bytes", 2), ("32 bits: 4 bytes", 4)]
    return Explorer(
        card_memory.shape,
        controls=[
            Choice("kv_heads", "KV heads", [1, 2, 4, 8, 16, 32], 8),
            Slider("num_layers", "Layers", 8, 128, 8, 32),
            Choice("head_dim", "Elements of a head", [64, 128, 256], 128),
            Choice("element_bytes", "K and V in", types, 2),
            Slider("length", "Sequence", 512, 131_072, 2, 8_192, unit="tokens", log=True),
        ],
        figure=figures.shape,
        summary=card_memory.shape_rows,
        title="What one token keeps",
        badge="theory",
    )


def one_sequence() -> Explorer:
    """What one sequence keeps in models that do not keep everything."""
    return Explorer(
        card_memory.architecture,
        controls=[
            Choice("name", "Model", card_memory.ARCHITECTURES, "gpt-oss-120b"),
            Slider("length", "Sequence", 128, 1_048_576, 2, 16_384, unit="tokens", log=True),
        ],
        figure=figures.architecture,
        summary=card_memory.architecture_rows,
        title="What one sequence keeps",
        badge="theory",
    )


def words_again() -> Explorer:
    """The small language model tells stories on the machine at hand, in a pool that may be too small for them."""
    return live_words.explorer()


def four_requests() -> go.Figure:
    """The case that is done by hand."""
    return by_hand(small_pool.small())


def ticket_graphs() -> go.Figure:
    """What comes with the ticket."""
    return ticket(kv_pool.hour(kv_pool.GQA, 2.0, 256))
