"""Figures of lab 10: where an engine's time goes, what each turn finds, four prompts by hand, and an operator's graphs.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import MARGIN, Part, line, note, pair, place
from course.lessons.lab10 import chats, one_prompt
from course.lessons.lab10.by_hand import BLOCK_SIZE, Small
from course.lessons.lab10.chats import TURNS, Chats
from course.lessons.lab10.evening import Evening
from course.lessons.lab10.one_prompt import AT_ONCE, Both

BINS = 30  # points of a line over time


def _bars(y: list[Any], x: np.ndarray, base: np.ndarray, colour: str, name: str, panel: int = 1, **more: Any) -> Part:
    look = {"type": "bar", "name": name, "marker": {"color": theme.COLOURS[colour]}, "hoverinfo": "name+x"}
    at = {"orientation": "h", "y": y, "x": theme.round_digits(x), "base": theme.round_digits(base), "width": 0.55}
    return place(panel) | look | at | more


def time_spent(result: Both, *, height: int = 250) -> go.Figure:
    """Seconds until all have their answers, those that prompts alone would take first; and the mean TTFT."""
    ends = np.array([result.off.makespan, result.on.makespan])
    alone = np.array([
        one_prompt.served(1, AT_ONCE, result.block_size, caching).makespan for caching in (False, True)
    ])  # fmt: skip
    ttft = np.array([run.ttft.mean() for run in (result.off, result.on)])
    data = [
        _bars([0, 1], alone, np.zeros(2), "prefill", "prompts"),
        _bars([0, 1], ends - alone, alone, "decode", "all else"),
        _bars([0, 1], ttft, np.zeros(2), "waiting", "mean TTFT", 2),
    ]
    rows = {"tickvals": [0, 1], "ticktext": ["without", "with"], "range": [1.5, -0.9], "showgrid": False}
    notes = [
        note(0, -0.75, "prompts alone", "prefill", xref="x", yref="y"),
        note(float(ends.max()), -0.75, "all else", "decode", "right", xref="x", yref="y"),
        note(0, -0.75, "mean TTFT", "waiting", xref="x2", yref="y2"),
    ]
    left = {"title": {"text": "until all are answered [s]"}, "range": theme.round_digits([0, 1.05 * ends.max()])}
    right = {"title": {"text": "TTFT [s]"}, "range": theme.round_digits([0, 1.05 * ttft.max()])}
    blank = {"tickvals": [], "range": [1.5, -0.9], "showgrid": False}
    columns = ((0.0, 0.56), (0.66, 1.0))
    margin = MARGIN | {"t": 8}
    return pair(data, (left, rows), (right, blank), height, columns=columns, annotations=notes, barmode="overlay",
                margin=margin)  # fmt: skip


def by_turn(result: Chats, *, height: int = 280) -> go.Figure:
    """Tokens of a prompt that were found, and that were computed, in each turn: means over the chats."""
    found, computed = result.found / chats.CHATS, (result.asked - result.found) / chats.CHATS
    turns = list(range(1, TURNS + 1))
    data = [
        place(1) | {"type": "bar", "name": name, "x": turns, "y": theme.round_digits(y), "width": 0.6,
                    "marker": {"color": theme.COLOURS[colour]}, "hoverinfo": "name+y"}
        for name, colour, y in (("found", "decode", found), ("computed", "prefill", computed))
    ]  # fmt: skip
    top = float((found + computed).max())
    notes = [note(0.5, 0.97 * top, "found", "decode"), note(0.5, 0.85 * top, "computed", "prefill")]
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"t": 8}, "barmode": "stack",
        "annotations": notes,
        "xaxis": {"title": {"text": "turn of a chat"}, "tickvals": turns, "range": [0.4, TURNS + 0.6]},
        "yaxis": {"title": {"text": "prompt [tokens]"}, "range": theme.round_digits([0, 1.05 * top])},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def by_hand(case: Small, *, height: int = 230) -> go.Figure:
    """The prompts as blocks in a row: what was found, what was computed."""
    edge = {"line": {"width": 2, "color": theme.PAPER}}
    data: list[Part] = []
    notes: list[Part] = []
    for place_, (tokens, found) in enumerate(zip(case.prompts.tolist(), case.found.tolist(), strict=True)):
        for start in range(0, tokens, BLOCK_SIZE):
            kind, colour = ("found", "decode") if start < found else ("computed", "prefill")
            size = np.array([min(BLOCK_SIZE, tokens - start)])
            data.append(_bars([place_], size, np.array([start]), colour, kind,
                              marker={"color": theme.COLOURS[colour]} | edge))  # fmt: skip
        notes.append(note(tokens + 0.2, place_, f"{found} found, {tokens - found} computed"))
    names = {"tickvals": list(range(len(case.names))), "ticktext": list(case.names), "range": [3.5, -0.5]}
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"t": 8}, "annotations": notes,
        "barmode": "overlay",
        "xaxis": {"title": {"text": "tokens of the prompt"}, "range": [0, 16], "dtick": BLOCK_SIZE},
        "yaxis": names | {"showgrid": False},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def dashboard(before: Evening, since: Evening, *, height: int = 300) -> go.Figure:
    """What an operator has before anybody asks for more: the hit rate since the start, and the mean TTFT."""
    data: list[Part] = []
    notes: list[Part] = []
    for day, colour, evening in (("Monday", "waiting", before), ("since Tuesday", "wasted", since)):
        run = evening.run
        edges = np.linspace(0, float(run.arrival.max()), BINS + 1)
        rate = evening.rate_by(edges[1:])
        data.append(line(edges[1:], 100 * rate, colour, day, 1, width=2))
        which = np.minimum(np.searchsorted(edges, run.arrival, side="right") - 1, BINS - 1)
        mean = np.bincount(which, run.ttft, BINS) / np.maximum(np.bincount(which, minlength=BINS), 1)
        data.append(line((edges[:-1] + edges[1:]) / 2, mean, colour, day, 2, width=2))
        notes.append(note(float(edges[-1]), 100 * float(rate[-1]) + 1, day, colour, "right", yanchor="bottom"))
    time = {"title": {"text": "time [s]"}, "rangemode": "tozero"}
    axes = ({"title": {"text": "prefix cache hit rate [%]"}, "range": [0, 60]},
            {"title": {"text": "TTFT, mean [s]"}, "rangemode": "tozero"})  # fmt: skip
    return pair(data, (time, axes[0]), (time, axes[1]), height, annotations=notes)
