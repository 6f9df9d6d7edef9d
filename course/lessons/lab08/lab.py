"""What the notebooks of lab 08 call by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from course.exercises import GameRecord, tasks_of
from course.explore import Choice, Explorer, Slider
from course.explore.board_view import Match
from course.lessons.lab08 import card_memory, figures, game, kv_pool, small_pool, tasks
from course.lessons.lab08.card_memory import ENGINES_OWN
from course.lessons.lab08.decision import log as log_of_four_slots
from course.lessons.lab08.kv_pool import start_up_log, tokens_held
from course.lessons.lab08.live_words import words_again
from course.lessons.lab08.tables import (
    kinds_under_load,
    preempted_page,
    printed_and_estimated,
    two_cards,
    what_a_sequence_keeps,
)

__all__ = [
    "a_small_pool", "four_requests", "full_pool", "kinds_under_load", "log_of_four_slots", "preempted_page",
    "printed_and_estimated", "start_up_log", "ticket_graphs", "tokens_held", "two_cards", "what_a_sequence_keeps",
    "what_fits", "words_again",
]  # fmt: skip


def what_fits() -> Explorer:
    """The memory of a card, line by line, and what its log would print."""
    seqs: list[Any] = [("the engine's own", ENGINES_OWN), 64, 256, 512, 1_024]
    types = [("16 bits", "bfloat16"), ("fp8", "fp8")]
    return Explorer(
        card_memory.fit,
        controls=[
            Choice("model_name", "Model", list(card_memory.DENSE), tasks.CARD["model_name"]),
            Choice("card", "Card", list(card_memory.CARDS), tasks.CARD["card"]),
            Slider("gpu_memory_utilization", "gpu_memory_utilization", 0.5, 0.98, 0.02, 0.9),
            Choice("max_num_seqs", "max_num_seqs", seqs, ENGINES_OWN),
            Choice("kv_dtype", "K and V in", types, "bfloat16"),
            Slider("max_model_len", "max_model_len", 512, 131_072, 2, tasks.CARD["max_model_len"], "tokens", log=True),
        ],
        figure=figures.card,
        summary=card_memory.short_rows,
        title="What fits on a card",
        badge="theory: sizes from the config, activation and other estimated",
        beside=True,
        **tasks_of("08", "what_fits"),
    )


def a_small_pool() -> Match:
    """Five requests in a pool that cannot hold them, admitted by hand."""
    return Match(game.BLOCKS, GameRecord("08", game.BLOCKS.id))


def full_pool() -> Explorer:
    """The graphs of an operator: blocks in use, who runs and who waits, preemptions."""
    return Explorer(
        kv_pool.hour,
        controls=[
            Slider("rate", "Arrival rate", 0.25, 3.0, 0.25, tasks.POOL["rate"], unit="requests/s"),
            Choice("slots", "Slots (max_num_seqs)", tasks.SLOTS, tasks.POOL["slots"]),
            Choice("kind", "Attention, K and V", list(kv_pool.BYTES), tasks.POOL["kind"]),
        ],
        figure=figures.operator,
        summary=kv_pool.hour_rows,
        title="One RTX 4090, 240 requests",
        beside=True,
        **tasks_of("08", "full_pool"),
    )


def four_requests() -> go.Figure:
    """The case that is done by hand."""
    return figures.by_hand(small_pool.small())


def ticket_graphs() -> go.Figure:
    """What comes with the ticket."""
    return figures.ticket(kv_pool.hour(kv_pool.GQA, 2.0, 256))
