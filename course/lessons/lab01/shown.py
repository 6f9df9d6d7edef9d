"""Tables and figures of lab 01 that are no explorers, each one line in the notebook."""

from __future__ import annotations

import plotly.graph_objects as go

from course.explore.table import Table, table
from course.figures.timelines import timelines
from course.lessons.lab01 import chat, figures, replicas

__all__ = ["dashboard_and_users", "four_by_hand", "ticket_graphs"]


def dashboard_and_users() -> Table:
    """The chat by two clocks: its engine's, and that of its users."""
    return table(chat.two_clocks(), f"{chat.RATE} requests/s, as two clocks see them [{chat.STEP.badge}]")


def four_by_hand() -> go.Figure:
    """Four requests on a time axis."""
    return timelines({"two slots": chat.by_hand()}, height=230, note="one step = 1 s")


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return figures.operators_graphs(replicas.service())
