"""Figures of lab 09: the pool and what it holds, a pool that runs out, three requests by hand, and a ticket.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import MARGIN, Part, heading, line, note, place
from course.lessons.lab09 import pool
from course.lessons.lab09.pool import TOKENS, Served

POINTS, INTERVALS = 121, 40  # of a line over time, and bars
PIECE, SMALL, PLACES = 16, 4, 32
"""By hand: tokens reserved for each, tokens of a block, and the tokens of the pool."""
HAND = {"A": 5, "B": 9, "C": 3}
"""Requests and the tokens that they hold."""


def handed_out(result: Served, *, height: int = 330) -> go.Figure:
    """Tokens that are taken and that are held, and who runs, over time."""
    times, at = _moments(result)
    data = [
        line([0, times[-1]], [TOKENS, TOKENS], "theory", "pool", dash="dash", width=1.5),
        line(times, result.taken[at], "waiting", "reserved or taken", width=2),
        line(times, result.held[at], "decode", "holding tokens", width=2.5),
        line(times, result.run.steps.running[at], "decode", "running", 2, width=2.5),
    ]
    notes = [
        heading(1, "reserved or taken (grey), holding tokens (blue)"),
        heading(2, f"running, {result.running:.0f} on average while somebody waits"),
    ]
    return _two(
        data, notes, times[-1], height,
        {"title": {"text": "tokens"}, "range": [0, 1.08 * TOKENS], "tickvals": [0, 20_000, 40_000]},
        {"title": {"text": "requests"}, "range": [0, 300]},
    )  # fmt: skip


def running_out(result: Served, *, height: int = 330) -> go.Figure:
    """Who runs, and when somebody loses his blocks."""
    times, at = _moments(result)
    steps, width = result.run.steps, float(times[-1]) / INTERVALS
    place_of = np.minimum((steps.start / width).astype(int), INTERVALS - 1)
    lost = np.bincount(place_of, weights=steps.preemptions, minlength=INTERVALS)
    data: list[Part] = [
        line(times, steps.running[at], "decode", "running", width=2.5),
        place(2)
        | {"type": "bar", "name": "preemptions", "marker": {"color": theme.COLOURS["wasted"]}, "width": round(width, 4),
           "x": theme.round_digits(width * (np.arange(INTERVALS) + 0.5)), "y": theme.round_digits(lost)},
    ]  # fmt: skip
    notes = [
        heading(1, f"running: {steps.running.max()} at most, {result.running:.0f} on average"),
        heading(2, f"preemptions in {width:.1f} s, {result.preemptions:,} in all"),
    ]
    return _two(
        data, notes, times[-1], height, {"title": {"text": "requests"}, "range": [0, 300]},
        {"title": {"text": "count"}, "range": theme.round_digits([0, max(4.0, 1.1 * float(lost.max()))]), "nticks": 4},
    )  # fmt: skip


def _moments(result: Served) -> tuple[np.ndarray, np.ndarray]:
    """Times, and the step that runs at each."""
    ends = result.run.steps.end
    times = np.linspace(0, float(ends[-1]), POINTS)
    return times, np.minimum(np.searchsorted(ends, times), len(ends) - 1)


def _two(data: list[Part], notes: list[Part], end: float, height: int, upper: Part, lower: Part) -> go.Figure:
    """Two panels over one axis of time [s]."""
    layout: dict[str, Any] = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes,
        "yaxis": upper | {"domain": [0.58, 1.0], "anchor": "x"},
        "yaxis2": lower | {"domain": [0.0, 0.4], "anchor": "x2"},
        "xaxis": {"anchor": "y", "showticklabels": False, "matches": "x2"},
        "xaxis2": {"anchor": "y2", "title": {"text": "time [s]"}, "range": theme.round_digits([0, float(end)])},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def by_hand(*, height: int = 230) -> go.Figure:
    """Memory of 32 tokens, reserved in pieces and in blocks: what holds a token, and what is only taken."""
    bars: list[Part] = []
    notes: list[Part] = []
    for row, size in enumerate((PIECE, SMALL)):
        begin = 0
        for name, held in HAND.items():
            taken = size if row == 0 else -(-held // size) * size
            if begin + taken > PLACES:
                notes.append(note(PLACES + 0.5, row, f"{name} waits", "wasted"))
                break
            bars += [_cells(row, begin, held, "decode"), _cells(row, begin + held, taken - held, "waiting")]
            notes.append(note(begin + held / 2, row, name, "#FFFFFF", "center"))
            begin += taken
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"l": 150, "r": 24, "t": 12},
        "annotations": notes, "barmode": "overlay",
        "xaxis": {"title": {"text": "memory [tokens]: holds one (blue), empty (grey), free"}, "range": [0, PLACES + 4],
                  "tickvals": list(range(0, PLACES + 1, SMALL))},
        "yaxis": {"tickvals": [0, 1], "ticktext": [f"{PIECE} reserved each", f"blocks of {SMALL}"],
                  "range": [1.6, -0.6], "showgrid": False},
    }  # fmt: skip
    return theme.plain_figure(bars, layout)


def _cells(row: int, begin: int, many: int, colour: str) -> Part:
    look = {"color": theme.COLOURS[colour], "line": {"color": "#FFFFFF", "width": 1}}
    return place(1) | {
        "type": "bar", "orientation": "h", "x": [1] * many, "base": list(range(begin, begin + many)), "y": [row] * many,
        "width": 0.7, "marker": look, "name": "holds a token" if colour == "decode" else "empty",
    }  # fmt: skip


def ticket(result: Served, *, height: int = 300) -> go.Figure:
    """The words of the request that was preempted most, and of one with an answer as long that came before it."""
    worst, other = two_readers(result)
    data = [
        line(times, np.arange(1, len(times) + 1), colour, name, width=2.5)
        for name, colour, times in (
            ("its answer", "wasted", result.run.token_times(worst)),
            ("another", "decode", result.run.token_times(other)),
        )
    ]
    notes = [heading(1, "the answer of the ticket (orange), and another of its length (blue)")]
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes,
        "xaxis": {"title": {"text": "time [s]"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "tokens out"}, "rangemode": "tozero"},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def two_readers(result: Served) -> tuple[int, int]:
    """The request that was preempted most often, and of those never preempted the one with the next length."""
    lost, length = result.run.preempted, pool.requests().output_tokens
    worst = int(lost.argmax())
    calm = np.flatnonzero((lost == 0) & (np.arange(len(lost)) != worst))
    return worst, int(calm[np.abs(length[calm] - length[worst]).argmin()])
