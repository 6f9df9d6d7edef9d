"""What the notebook of lab 11 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.exercises import tasks_of
from course.explore import Choice, Explorer, Slider
from course.lessons.lab11 import card, figures, launch, shapes, tasks
from course.lessons.lab11.batch import EDGES, MEAN, MIXES, SPREADS
from course.lessons.lab11.card import other_draws
from course.lessons.lab11.decision import log
from course.lessons.lab11.reach import scattered, second_cache
from course.lessons.lab11.shapes import MOST_BUCKETS

__all__ = [
    "launched_here", "log", "on_the_card", "one_batch", "other_draws", "scattered", "second_cache",
    "three_by_hand", "ticket_graphs",
]  # fmt: skip


def one_batch() -> Explorer:
    """32 prompts as a rectangle, in buckets and ragged."""
    return Explorer(
        shapes.one_batch,
        controls=[
            Choice("mix", "Prompts", list(MIXES), tasks.BATCH["mix"]),
            Slider("spread", "Spread", 0.0, SPREADS[-1], tasks.FINE, tasks.BATCH["spread"]),
            Slider("buckets", "Buckets", 1, MOST_BUCKETS, 1, tasks.BATCH["buckets"]),
            Choice("edges", "Edges", list(EDGES), tasks.BATCH["edges"]),
        ],
        figure=figures.three_shapes,
        summary=shapes.rows,
        title=f"32 prompts of {MEAN} tokens on average",
        badge="theory: counted for Llama-3.1-8B",
        beside=False,
        **tasks_of("11", "one_batch"),
    )


def on_the_card() -> Explorer:
    """What the layouts took on an H200."""
    return Explorer(
        card.on_the_card,
        controls=[
            Choice("kind", "Launched", list(card.KINDS), tasks.CARD["kind"]),
            Choice("mix", "Prompts", list(MIXES), tasks.CARD["mix"]),
            Slider("spread", "Spread", SPREADS[0], SPREADS[-1], 0.5, tasks.CARD["spread"]),
        ],
        figure=figures.on_the_card,
        summary=card.rows,
        title="The same prompts on a card",
        badge=card.recording().badge,
        beside=True,
        **tasks_of("11", "on_the_card"),
    )


def launched_here() -> Explorer:
    """The layouts are launched on the machine at hand, beside the same on an H200."""
    return launch.explorer()


def three_by_hand() -> go.Figure:
    """The case that is done by hand."""
    return figures.by_hand()


def ticket_graphs() -> go.Figure:
    """What comes with the ticket."""
    return figures.ticket()
