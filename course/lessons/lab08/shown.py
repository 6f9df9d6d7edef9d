"""What the notebooks of lab 08 show in one line, besides its explorers."""

import plotly.graph_objects as go

from course.lessons.lab08 import kv_pool, small_pool
from course.lessons.lab08.small_pool_figure import by_hand
from course.lessons.lab08.tables import two_cards
from course.lessons.lab08.ticket_figure import ticket

__all__ = ["four_requests", "ticket_graphs", "two_cards"]


def four_requests() -> go.Figure:
    """The case that is done by hand."""
    return by_hand(small_pool.small())


def ticket_graphs() -> go.Figure:
    """What comes with the ticket."""
    return ticket(kv_pool.hour(kv_pool.GQA, 2.0, 256))
