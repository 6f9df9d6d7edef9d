"""Figures of lab 12: a step's timeline, program and card over some steps, parts of Python, all as plain data."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import INKS, MARGIN, Part, heading, note, pair, place
from course.lessons.lab12 import who_waits
from course.lessons.lab12.on_device import LAUNCHES
from course.lessons.lab12.one_step import OneStep, one_step
from course.lessons.lab12.python_part import PARTS
from course.lessons.lab12.python_part import Part as PythonPart
from course.lessons.lab12.who_waits import AFTER, Waits

PROGRAM, EARLY, CARD = LANES = ("program", "begun early", "card")
SLICES, STEPS = 8, 6
KEY = (
    ("continuous", "starts kernels"),
    ("decode", "kernels compute"),
    ("waiting", "begun, waiting for the one before"),
)
KEY_TWO = (("waiting", "plans, sends, takes tokens"), ("continuous", "starts kernels"), ("decode", "kernels compute"))


def _bars(lane: str, spans: Sequence[tuple[float, float]], colour: str, name: str, **more: object) -> Part:
    """Bars of one lane: (beginning, length)."""
    return {
        "type": "bar", "orientation": "h", "name": name, "y": [lane] * len(spans), "hoverinfo": "name+x",
        "x": theme.round_digits([length for _, length in spans]), "width": 0.6,
        "base": theme.round_digits([begin for begin, _ in spans]),
        "marker": {"color": theme.COLOURS[colour], "line": {"width": 1, "color": theme.PAPER}},
    } | more  # fmt: skip


def _lanes(data: list[Part], lanes: Sequence[str], title: str, longest: float, key: Sequence[tuple[str, str]],
           height: int) -> go.Figure:  # fmt: skip
    words = "  ".join(f'<span style="color:{INKS[colour]}">■</span> {what}' for colour, what in key)
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"l": 100, "t": 40}, "barmode": "overlay",
        "xaxis": {"title": {"text": title}, "range": theme.round_digits([0, longest], 3)},
        "yaxis": {"type": "category", "categoryorder": "array", "categoryarray": list(lanes)[::-1], "ticks": "",
                  "showgrid": False, "range": [-0.6, len(lanes) - 0.4]},
        "annotations": [note(0, 1, words, xref="paper", yref="paper", yanchor="bottom")],
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def timeline(found: OneStep, *, longest: float | None = None, height: int = 240) -> go.Figure:
    """The program's calls and the kernels of one step; the axis is that of the step by launches."""
    computing, waiting, reached = [], [], 0.0
    for begin, length in found.kernels:
        if begin < reached:
            waiting.append((begin, min(reached, begin + length) - begin))
        computing.append((max(begin, reached), max(0.0, begin + length - max(begin, reached))))
        reached = max(reached, begin + length)
    data = [
        _bars(PROGRAM, found.calls, "continuous", "the program starts kernels"),
        _bars(EARLY, waiting, "waiting", "begun before the one before has ended"),
        _bars(CARD, computing, "decode", "a kernel computes"),
    ]
    longest = longest or 1.05 * max(one_step(LAUNCHES, found.work).span, found.span)
    return _lanes(data, LANES, "time [µs]", longest, KEY, height)


def by_hand(launched: OneStep, graph: OneStep, *, height: int = 240) -> go.Figure:
    """Four kernels of the case by hand, by launches and as a graph."""
    lanes = ("launches:", "the card", "a graph:", "the card ")
    data = [
        _bars(lanes[0], launched.calls, "continuous", "the program starts kernels"),
        _bars(lanes[1], launched.kernels, "decode", "a kernel computes"),
        _bars(lanes[2], graph.calls, "continuous", "the program starts kernels"),
        _bars(lanes[3], graph.kernels, "decode", "a kernel computes"),
    ]
    return _lanes(data, lanes, "time [µs]", 30.0, KEY[:2], height)


def _spans(found: Waits) -> tuple[list, list, list]:
    """Plans, starts and computing of some steps [ms]."""
    plan, start, card, step = (1e3 * value for value in (found.plan, found.start, found.card, found.step))
    plans, starts, cards = [], [], []
    for number in range(STEPS):
        begin = number * step
        plans.append((begin, plan))
        starts.append((begin + plan, start))
        # While the program launches kernel after kernel, they are spread over that time.
        spread = max(card, start) if found.form == LAUNCHES else card
        pieces = SLICES if found.form == LAUNCHES and start > card else 1
        for piece in range(pieces):
            cards.append((begin + plan + piece * spread / pieces, card / pieces))
    return plans, starts, cards


def two_rows(found: Waits, *, longest: float | None = None, height: int = 220) -> go.Figure:
    """Program and card over some steps; the axis is that of launches after the last step."""
    plans, starts, cards = _spans(found)
    data = [
        _bars("program", plans, "waiting", "plans, sends inputs, takes tokens"),
        _bars("program", starts, "continuous", "starts kernels"),
        _bars("card", cards, "decode", "kernels compute"),
    ]
    if longest is None:
        first = who_waits.waits(found.model, LAUNCHES, AFTER, 1e3 * found.plan, found.batch)
        longest = 3.2e3 * first.step
    return _lanes(data, ("program", "card"), "time [ms]", longest, KEY_TWO, height)


def python_parts(found: PythonPart, *, height: int = 240) -> go.Figure:
    """Python's parts of a step: beside the recorded card, and on this machine."""
    data, heads, axes = [], [heading(1, "beside an H200, recorded")], []
    for panel, parts in enumerate((found.recorded, found.here), start=1):
        spans = [(name, 1e6 * parts[name]) for name in PARTS if name in parts]
        data += [_bars(name, [(0.0, value)], "continuous", name) | place(panel) for name, value in spans]
        longest = 1.1 * max([value for _, value in spans], default=1.0)
        x = {"title": {"text": "time [µs]"}, "range": theme.round_digits([0, longest], 3)}
        y = {"type": "category", "categoryorder": "array", "categoryarray": list(PARTS)[::-1], "ticks": "",
             "showgrid": False, "showticklabels": panel == 1, "range": [-0.6, len(PARTS) - 0.4]}  # fmt: skip
        axes.append((x, y))
    if found.here:
        heads.append(heading(2, "this machine, measured"))
    margin = MARGIN | {"l": 140, "t": 36}
    return pair(data, axes[0], axes[1], height, margin=margin, annotations=heads, barmode="overlay")
