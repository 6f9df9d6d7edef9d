"""What the notebook of lab 01 calls by name: explorers, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.exercises import tasks_of
from course.explore import Explorer, Slider
from course.explore.table import Table, table
from course.explore.words import WordsExplorer, words_on_the_screen
from course.figures.timelines import timelines
from course.lessons.lab01 import chat, figures, replicas, tasks
from course.lessons.lab01.part_by_part import launch_explorer as one_question

__all__ = [
    "dashboard_and_users", "four_by_hand", "one_question", "ticket_graphs", "where_the_time_goes", "words_and_waits",
]  # fmt: skip


def dashboard_and_users() -> Table:
    """The chat by two clocks: its engine's, and that of its users."""
    return table(chat.two_clocks(), f"{chat.RATE} requests/s, as two clocks see them [{chat.STEP.simulated}]")


def words_and_waits() -> WordsExplorer:
    """The language model answers twelve people, and each of them waits for a first word."""
    return words_on_the_screen(**tasks.SPOKEN, choices=("continuous", "static"), **tasks_of("01", "words_and_waits"))


def where_the_time_goes() -> Explorer:
    """TTFT of the chat in parts: the mean, the p50 and the p99."""
    return Explorer(
        chat.chat,
        controls=[
            Slider("rate", "Arrival rate", 2, 16, 1, chat.RATE, unit="requests/s"),
            Slider("window_ms", "Window", 0, 200, 5, chat.WINDOW_MS, unit="ms"),
            Slider("prompt", "Prompt", 128, 2_048, 2, chat.PROMPT, unit="tokens", log=True),
            Slider("outside_ms", "Outside", 0, 200, 5, chat.OUTSIDE_MS, unit="ms"),
        ],
        figure=figures.where_it_goes,
        summary=chat.rows,
        title="Where the time goes",
        badge=chat.STEP.simulated,
        beside=False,
        **tasks_of("01", "where_the_time_goes"),
    )


def four_by_hand() -> go.Figure:
    """Four requests on a time axis."""
    return timelines({"two slots": chat.by_hand()}, height=230, note="one step = 1 s")


def ticket_graphs() -> go.Figure:
    """The graphs of the ticket."""
    return figures.operators_graphs(replicas.service())
