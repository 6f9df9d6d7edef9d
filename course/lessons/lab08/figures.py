"""Figures of lab 08: the ledger of a card, four requests by hand, and what an operator sees when the pool is full.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.engine.run import Run
from course.figures import theme
from course.figures.parts import MARGIN, Part, line, note, place
from course.lessons.lab08.card_memory import GIB, Fit
from course.lessons.lab08.kv_pool import UnderLoad
from course.lessons.lab08.small_pool import BLOCKS, Small

KINDS = (("weights", "waiting"), ("activation", "prefill"), ("other", "modelled"), ("KV", "decode"))
"""Lines of the ledger in the order of the bar, each with the colour of what it is there for."""
BIN = 101  # points of a line over time


def card(result: Fit, *, height: int = 320) -> go.Figure:
    """The card as one bar, from its weights at the bottom to what is not used."""
    found = result.ledger
    sizes = (found.weights_bytes, found.activation_bytes, found.other_bytes, max(found.kv_bytes, 0))
    data: list[Part] = []
    notes: list[Part] = []
    end, usable = found.total_bytes / GIB, found.usable_bytes / GIB
    top = max(end, sum(sizes) / GIB)
    apart = 0.085 * top  # labels of thin parts would write over each other
    base, lowest = 0.0, -top
    for (name, colour), size in zip(KINDS, (size / GIB for size in sizes), strict=True):
        data.append(
            place(1) | {"type": "bar", "x": [0], "y": theme.round_digits([size]), "base": theme.round_digits([base]),
                       "name": name, "width": [0.8], "marker": {"color": theme.COLOURS[colour]},
                       "hoverinfo": "name+y"}
        )  # fmt: skip
        if size:
            lowest = max(base + size / 2, lowest + apart)
            notes.append(note(0.46, lowest, f"{name} {size:.2f} GiB", colour, xref="x", yref="y"))
        base += size
    if top > end:
        notes.append(note(0.46, end, f"the card {end:.2f} GiB", xref="x", yref="y"))
    else:
        above = max((usable + end) / 2, lowest + apart)
        notes.append(note(0.46, above, f"not used {end - usable:.2f} GiB", xref="x", yref="y"))
    edge = {"xref": "x", "yref": "y", "x0": -0.4, "x1": 0.4, "line": {"color": theme.INK, "width": 1.5}}
    length = found.max_model_len
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN | {"t": 12, "b": 40}, "annotations": notes,
        "shapes": [edge | {"type": "rect", "y0": 0, "y1": round(end, 4)},
                   edge | {"type": "line", "y0": round(usable, 4), "y1": round(usable, 4)}],
        "barmode": "overlay",
        "xaxis": {"range": [-0.45, 1.6], "showticklabels": False, "ticks": "", "showgrid": False,
                  "title": {"text": f"{result.card}: {found.kv_tokens:,} tokens, "
                                    f"{found.concurrency(length):.1f} x {length:,}"}},
        "yaxis": {"title": {"text": "memory [GiB]"}, "range": theme.round_digits([0, 1.03 * top])},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def by_hand(case: Small, *, height: int = 300) -> go.Figure:
    """Blocks that each of four requests holds in each step, one on top of the other, and the pool's size."""
    steps = np.arange(len(case.held)) + 0.5
    colours = ("continuous", "decode", "prefill", "static")
    edge = {"width": 1, "color": "#FFFFFF"}
    data: list[Part] = [
        place(1)
        | {"type": "bar", "x": theme.round_digits(steps), "y": theme.round_digits(held.astype(float)), "name": name}
        | {"width": 1, "marker": {"color": theme.COLOURS[colour], "line": edge}}
        for name, colour, held in zip("ABCD", colours, case.held.T, strict=True)
    ]
    data.append(line([0, len(steps)], [BLOCKS] * 2, "theory", "pool", dash="dash", width=1.5))
    middles = np.cumsum(case.held, axis=1) - case.held / 2
    notes = [note(2.5, float(middles[2, i]), name, "#FFFFFF", "center") for i, name in enumerate("ABCD")]
    notes.append(note(len(steps), BLOCKS + 0.2, f"pool: {BLOCKS} blocks", anchor="right", yanchor="bottom"))
    for name, held, times in zip("ABCD", case.held.T, case.run.preempted, strict=True):
        lost = np.flatnonzero((held[:-1] > 0) & (held[1:] == 0)) + 1
        for step in lost[:times]:  # a further one is its end
            notes.append(note(float(step), BLOCKS + 0.2, f"{name} is preempted", "wasted", "center", yanchor="bottom"))
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes, "barmode": "stack",
        "xaxis": {"title": {"text": "time [steps]"}, "range": [0, len(steps)], "dtick": 2},
        "yaxis": {"title": {"text": "blocks held [count]"}, "range": [0, BLOCKS + 2], "tickvals": [0, 4, 8, 12]},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def operator(result: UnderLoad, *, height: int = 340) -> go.Figure:
    """Three graphs over time: blocks in use, who runs and who waits, preemptions."""
    run, steps = result.run, result.run.steps
    times = np.linspace(0, float(steps.end[-1]), BIN)
    at = np.minimum(np.searchsorted(steps.end, times), len(steps) - 1)
    waiting, width = queued(run, times), float(times[1])
    lost = _by_interval(steps.start, steps.preemptions, width, BIN - 1)
    data = [
        line(times, 100 * result.pool_used[at], "decode", "blocks in use", 1, width=2),
        line(times, waiting, "waiting", "waiting", 2, width=2),
        line(times, steps.running[at], "decode", "running", 2, width=2),
        place(3) | {"type": "bar", "x": theme.round_digits(times[:-1] + width / 2), "y": theme.round_digits(lost),
                   "width": round(width, 4), "marker": {"color": theme.COLOURS["wasted"]}, "name": "preemptions"},
    ]  # fmt: skip
    right = {"xanchor": "right", "yanchor": "bottom", "showarrow": False, "xref": "x domain", "y": 1.0}
    headings = (
        ("y", 0.995, "KV blocks in use", "decode"),
        ("y2", 0.5, f"waiting (at most {int(waiting.max()):,})", "waiting"),
        ("y2", 0.995, f"running (at most {steps.running.max()})", "decode"),
        ("y3", 0.995, f"preemptions in {width:.1f} s, {result.preemptions:,} in all", "wasted"),
    )
    notes = [
        right | {"yref": f"{panel} domain", "x": x, "text": words, "font": {"color": theme.ink(colour), "size": 15}}
        for panel, x, words, colour in headings
    ]
    axes = (
        {"title": {"text": "%"}, "domain": [0.76, 0.98], "range": [0, 104], "tickvals": [0, 50, 100]},
        {"title": {"text": "count"}, "domain": [0.38, 0.62], "rangemode": "tozero", "nticks": 3},
        {"title": {"text": "count"}, "domain": [0, 0.24], "nticks": 3,
         "range": theme.round_digits([0, max(float(lost.max()) * 1.1, 4)])},
    )  # fmt: skip
    return _stacked(data, notes, axes, times[-1], height)


def ticket(result: UnderLoad, *, height: int = 360) -> go.Figure:
    """What an operator has before anybody asks for more: who runs and who waits, output, and the longest gap."""
    run, steps = result.run, result.run.steps
    edges = np.linspace(0, float(steps.end[-1]), 41)
    width = float(edges[1])
    at = np.minimum(np.searchsorted(steps.end, edges), len(steps) - 1)
    said = _by_interval(steps.start, steps.decodes, width, 40) / width
    data = [
        line(edges, steps.running[at], "decode", "running", 1, width=2),
        line(edges, queued(run, edges), "waiting", "waiting", 1, width=2),
        line(edges[:-1] + width / 2, said, "decode", "output", 2, width=2),
        line(edges[:-1] + width / 2, _longest_gaps(run, edges), "wasted", "longest gap", 3, width=2),
    ]
    heads = (("", "running (blue) and waiting (grey)"), ("2", "output"), ("3", "the longest gap in an answer"))
    notes = [note(0.005, 1, text, yanchor="bottom", xref=f"x{p} domain", yref=f"y{p} domain") for p, text in heads]
    axes = (
        {"title": {"text": "requests"}, "domain": [0.74, 0.95], "rangemode": "tozero"},
        {"title": {"text": "tokens/s"}, "domain": [0.37, 0.62], "rangemode": "tozero"},
        {"title": {"text": "gap [s]"}, "domain": [0, 0.25], "rangemode": "tozero", "dtick": 1},
    )
    return _stacked(data, notes, axes, edges[-1], height)


def _stacked(data: list[Part], notes: list[Part], axes: tuple[Part, Part, Part], end: float, height: int) -> go.Figure:
    """Three panels over one axis of time, from 0 to `end` [s]."""
    layout: dict[str, Any] = {"template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes}
    for panel, axis in zip(("", "2", "3"), axes, strict=True):
        layout[f"yaxis{panel}"] = axis | {"anchor": f"x{panel}"}
        layout[f"xaxis{panel}"] = {"anchor": f"y{panel}", "showticklabels": False, "matches": "x3"}
    layout["xaxis3"] = {"anchor": "y3", "title": {"text": "time [s]"}, "range": theme.round_digits([0, end])}
    return theme.plain_figure(data, layout)


def _by_interval(moments: np.ndarray, counts: np.ndarray, width: float, intervals: int) -> np.ndarray:
    """Sums of `counts` in intervals of `width` seconds."""
    return np.bincount(np.minimum((moments / width).astype(int), intervals - 1), weights=counts, minlength=intervals)


def queued(run: Run, times: np.ndarray) -> np.ndarray:
    """Requests that have arrived and not been admitted yet, at each time; preempted ones are not among them."""
    arrived = np.searchsorted(np.sort(run.arrival), times, side="right")
    return (arrived - np.searchsorted(np.sort(run.admitted), times, side="right")).astype(float)


def _longest_gaps(run: Run, edges: np.ndarray) -> np.ndarray:
    """The longest gap between two tokens of one answer that ends in each interval [s]; 0 where none does."""
    longest = np.zeros(len(edges) - 1)
    for request in range(len(run)):
        times = run.token_times(request)
        place = np.minimum(np.searchsorted(edges, times[1:]) - 1, len(longest) - 1)
        np.maximum.at(longest, place, np.diff(times))
    return longest
