"""Tables and figures of lab 02 that are no explorers, each one line in the notebook."""

from __future__ import annotations

import plotly.graph_objects as go

from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab02 import figures, one_curve
from course.lessons.lab02.one_step import CARD, KV_TOKEN, STEP, WEIGHTS, amount, recorded

__all__ = ["machine_by_hand", "one_at_a_time", "ticket_graphs"]


def one_at_a_time() -> Table:
    """The card with a single sequence: what a step takes and costs, what it reads, and at which rates."""
    step = recorded(1, one_curve.CONTEXT, 0)
    cost = one_curve.dollars(1, step, one_curve.PRICE)
    rows = [
        ("", "one user at a time"),
        ("a step", seconds(step)),
        ("tokens/s", f"{1 / step:.0f}"),
        ("a million tokens", f"{cost:.2f} dollars"),
        ("weights", amount(WEIGHTS, "B")),
        ("K and V of a sequence", amount(KV_TOKEN * one_curve.CONTEXT, "B")),
        ("memory is read at", f"{CARD.read_bandwidth / 1e12:.2f} TB/s"),
        ("a large product does", f"{CARD.matrix_flops / 1e12:.0f} TFLOP/s"),
    ]
    return table(rows, f"Llama-3.1-8B over {one_curve.CONTEXT:,} tokens [{STEP.badge}]")


def machine_by_hand() -> go.Figure:
    """A small machine's steps on a time axis."""
    return figures.machine_by_hand()


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return figures.operators_graphs()
