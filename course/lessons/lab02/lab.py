"""What the notebook of lab 02 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.exercises import tasks_of
from course.explore import Choice, Explorer, Slider
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab02 import figures, one_curve, one_step
from course.lessons.lab02.launch import launch_explorer
from course.lessons.lab02.one_step import CARD, KV_TOKEN, STEP, WEIGHTS, amount, recorded

__all__ = [
    "a_curve_and_its_knee", "a_step_on_the_roofline", "launched_here", "machine_by_hand", "one_at_a_time",
    "ticket_graphs",
]  # fmt: skip

PROMPTS = [("none", 0), ("128 tokens", 128), ("512 tokens", 512), ("2,048 tokens", 2_048)]


def a_step_on_the_roofline() -> Explorer:
    """What one step reads and multiplies, and how long it took."""
    return Explorer(
        one_step.one_step,
        controls=[
            Slider("decodes", "Decodes", 1, 256, 2, 1, unit="sequences", log=True),
            Slider("context", "Context of each", 256, 2_048, 2, one_step.CONTEXT, unit="tokens", log=True),
            Choice("prompt", "Prompt in the step", PROMPTS, 0),
            Choice("host_ms", "Host adds", [("nothing", 0.0), (f"{one_step.HOST_MS:g} ms", one_step.HOST_MS)], 0.0),
        ],
        figure=figures.on_the_roofline,
        summary=one_step.rows,
        title="A step on the roofline",
        badge=f"{STEP.badge}, beside theory",
        beside=False,
        **tasks_of("02", "a_step_on_the_roofline"),
    )


def a_curve_and_its_knee() -> Explorer:
    """A curve through recorded steps, its knee, and the cost of a token."""
    contexts = [(f"{context:,} tokens", context) for context in one_curve.CONTEXTS]
    return Explorer(
        one_curve.one_curve,
        controls=[
            Choice("context", "Context of each", contexts, one_curve.CONTEXT),
            Slider("most", "Largest batch measured", 8, one_curve.MOST, 2, one_curve.MOST, "sequences", log=True),
            Slider("batch", "Batch", 1, one_curve.LARGEST, 2, 1, "sequences", log=True),
            Slider("price", "Price", 1.0, 6.0, 0.5, one_curve.PRICE, "dollars an hour"),
        ],
        figure=figures.fitted,
        summary=one_curve.rows,
        title="A curve and its knee",
        badge=f"{STEP.badge}, with a fitted curve",
        beside=False,
        **tasks_of("02", "a_curve_and_its_knee"),
    )


def launched_here() -> Explorer:
    """Read probe, matrix product and attention on the machine at hand, beside the recording."""
    return launch_explorer()


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
