"""What the notebook of lab 03 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from course.engine.serving import serve
from course.exercises import tasks_of
from course.explore import Choice, Explorer, Slider
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab03 import evening, figures, one_engine, shown_figures
from course.lessons.lab03.live_words import explorer as law_on_live_words
from course.lessons.lab03.one_engine import STEP

__all__ = ["by_hand", "law_in_a_window", "law_on_live_words", "ticket_graphs", "today", "under_load"]

RATE = 10.0  # requests/s, today
FOUR, WINDOW = ((0, 4), (1, 3), (2, 6), (5, 7)), (2, 6)
"""Arrival and answer of four requests, and a window of their time [s]."""


def under_load() -> Explorer:
    """One engine at one load, with theory for Poisson arrivals beside it."""
    return Explorer(
        one_engine.under_load,
        controls=[
            Slider("rate", "Arrival rate", 2.0, 40.0, 0.5, 10.0, unit="requests/s"),
            Slider("arrival_cv", "Spread of the gaps (CV)", 0.0, 5.0, 0.5, 1.0),
            Choice("max_num_seqs", "Slots (max_num_seqs)", list(one_engine.CHOICES), 32),
            Choice("kind", "Requests", [("drawn", "drawn"), ("Azure-style trace", "trace")], "drawn"),
        ],
        figure=figures.latency_against_load,
        summary=one_engine.comparison,
        title="One engine under load",
        unused={"arrival_cv": ("kind", ["trace"])},
        badge=STEP.simulated,
        **tasks_of("03", "under_load"),
    )


def law_in_a_window() -> Explorer:
    """The number in the system over time, and Little's law inside a window."""
    return Explorer(
        one_engine.window,
        controls=[
            Slider("rate", "Arrival rate", 4.0, 17.0, 1.0, 14.0, unit="requests/s"),
            Slider("arrival_cv", "Spread of the gaps (CV)", 0.0, 5.0, 0.5, 1.0),
            Slider("start", "Window starts at", 0, 80, 5, 70, unit="s"),
            Slider("length", "Window length", 1, 60, 1, 10, unit="s"),
        ],
        figure=figures.number_over_time,
        summary=one_engine.window_rows,
        title="Little's law in a window",
        badge=STEP.simulated,
        **tasks_of("03", "law_in_a_window"),
    )


def today() -> Table:
    """The engine at today's rate: what people wait, and how loaded it is."""
    run = serve(one_engine.requests(RATE), one_engine.engine(), STEP)
    most = one_engine.capacity()
    rows = [
        ("", f"{RATE:g} requests/s"),
        ("TTFT, mean", seconds(run.ttft.mean())),
        ("TTFT, p99", seconds(float(np.percentile(run.ttft, 99)))),
        ("E2E, mean", seconds(run.e2e.mean())),
        ("capacity", f"{most:.1f} requests/s"),
        ("load", f"{RATE / most:.0%}"),
    ]
    return table(rows, f"Today [{STEP.simulated}]")


def by_hand() -> go.Figure:
    """Four requests on a time axis, and how many are in the system."""
    return shown_figures.four_by_hand(FOUR, WINDOW)


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return shown_figures.operators_graphs(evening.evening())
