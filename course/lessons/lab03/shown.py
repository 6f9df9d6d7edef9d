"""Tables and figures of lab 03 that are no explorers, each one line in the notebook."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from course.engine.serving import serve
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab03 import evening, one_engine, shown_figures
from course.lessons.lab03.one_engine import STEP

__all__ = ["by_hand", "ticket_graphs", "today"]

RATE = 10.0  # requests/s, today
FOUR, WINDOW = ((0, 4), (1, 3), (2, 6), (5, 7)), (2, 6)
"""Arrival and answer of four requests, and a window of their time [s]."""


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
    return table(rows, f"Today [{STEP.badge}]")


def by_hand() -> go.Figure:
    """Four requests on a time axis, and how many are in the system."""
    return shown_figures.four_by_hand(FOUR, WINDOW)


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return shown_figures.operators_graphs(evening.evening())
