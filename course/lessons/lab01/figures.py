"""Figures of lab 01: the parts of a TTFT as bars, one question on two machines, and the graphs of the ticket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from course.figures import parts, theme
from course.figures.parts import Part
from course.figures.words import seconds
from course.lessons.lab01.chat import PARTS, Chat
from course.lessons.lab01.replicas import EVERY, PROMISE, Service

FILL = {"outside": "modelled", "window": "dynamic", "queue": "waiting", "prefill": "prefill"}
MACHINE = {"tokenizer": "modelled", "prefill": "prefill", "decodes": "decode", "text": "wasted"}
DARK = ("modelled", "decode", "wasted")
"""Fills on which a label is white."""
ROOM = 0.12
"""Share of the axis that a part must have to carry its name."""


def _stack(rows: Sequence[tuple[str, Mapping[str, float]]], fills: Mapping[str, str], most: float) -> list[Part]:
    """Bars that lie end to end, a row for each mapping of seconds by part; wide parts carry their names."""
    data: list[Part] = []
    bases = dict.fromkeys((name for name, _ in rows), 0.0)
    for part, colour in fills.items():
        there = [(name, values[part]) for name, values in rows if part in values]
        if not there:
            continue
        lengths = [1e3 * value for _, value in there]
        data.append(
            {
                "type": "bar", "orientation": "h", "name": part, "y": [name for name, _ in there],
                "x": theme.round_digits(lengths), "base": theme.round_digits([bases[name] for name, _ in there]),
                "width": 0.6, "marker": {"color": theme.COLOURS[colour], "line": {"width": 0}},
                "text": [part if length > ROOM * most else "" for length in lengths], "textangle": 0,
                "textposition": "inside", "insidetextanchor": "middle", "constraintext": "none",
                "textfont": {"color": "#FFFFFF" if colour in DARK else "#000000", "size": 13},
            }
        )  # fmt: skip
        for (name, _), length in zip(there, lengths, strict=True):
            bases[name] += length
    ends = list(bases.values())
    texts = [f" {seconds(end / 1e3)}" for end in ends]
    labels = parts.words(ends, [0.0] * len(ends), texts, [theme.INK] * len(ends), corner="middle right")
    return [*data, labels | {"y": list(bases)}]


def _layout(rows: Sequence[tuple[str, Mapping[str, float]]], most: float, height: int, heading: str) -> Part:
    top = float(f"{most:.3g}")
    return {
        "template": theme.TEMPLATE, "height": height, "barmode": "overlay", "margin": parts.MARGIN | {"r": 70},
        "annotations": [parts.heading(1, heading)],
        "xaxis": {"title": {"text": "time [ms]"}, "range": [0, top]},
        "yaxis": {"autorange": "reversed", "ticks": "", "type": "category", "categoryorder": "array",
                  "categoryarray": [name for name, _ in rows]},
    }  # fmt: skip


def key(fills: Mapping[str, str]) -> str:
    """The names of the parts, each with its colour."""
    mark = '<span style="color:{}">■</span> {}'
    return "  ".join(mark.format(theme.COLOURS[colour], part) for part, colour in fills.items())


def where_it_goes(found: Chat, *, height: int = 300) -> go.Figure:
    """TTFT in parts: the mean, and the requests around the p50 and the p99."""
    rows = [
        ("mean", {part: found.mean(part) for part in PARTS}),
        ("p50", {part: found.near(part, 50) for part in PARTS}),
        ("p99", {part: found.near(part, 99) for part in PARTS}),
    ]
    # The axis grows by doubling, so that it rests while the sliders move a little.
    longest = 1e3 * max(sum(values.values()) for _, values in rows)
    most = 300.0 * 2 ** max(0, int(np.ceil(np.log2(longest / 270))))
    return theme.plain_figure(_stack(rows, FILL, most), _layout(rows, most, height, key(FILL)))


def two_machines(recorded: Mapping[str, float], here: Mapping[str, float] | None, *, height: int = 250) -> go.Figure:
    """The parts of one answer on the H100 and on this machine."""
    rows = [("H100, recorded", recorded)] + ([("this CPU, measured", here)] if here else [])
    most = 1e3 * max(sum(values.values()) for _, values in rows)
    return theme.plain_figure(_stack(rows, MACHINE, most), _layout(rows, 1.05 * most, height, key(MACHINE)))


def operators_graphs(found: Service, *, height: int = 320) -> go.Figure:
    """Left: the dashboard's number, minute by minute, and the promise. Right: requests that run in each replica."""
    minutes = (np.arange(found.minutes.shape[1]) + 0.5) * EVERY / 60
    end = found.minutes.shape[1] * EVERY / 60
    data = [
        parts.line(minutes, found.minutes.mean(axis=0), "waiting", "p99 of TTFT, mean of the replicas"),
        parts.line([0, end], [PROMISE, PROMISE], "theory", "promised", dash="dash", width=1.5),
        parts.line([0, end], [found.dashboard] * 2, "waiting", "over the half hour", dash="dot", width=1.5),
        parts.words(
            [0.3, 0.3],
            [PROMISE, 1.2],
            ["promised", f"dotted: over the half hour, {found.dashboard:.1f} s"],
            ["theory", "waiting"],
        ),
    ]
    for name, values, colour in zip("ABC", found.running, ("wasted", "continuous", "dynamic"), strict=True):
        data.append(parts.line(minutes, values, colour, name, 2))
    heights = found.running.mean(axis=1)
    corners = ["top left", "top left", "bottom left"]  # B and C run as many
    data.append(
        parts.words([end] * 3, heights, ["A", "B", "C"], ["wasted", "continuous", "dynamic"], 2, corner=corners)
    )
    time = {"title": {"text": "time [minutes]"}, "range": [0, end]}
    return parts.pair(
        data,
        (time, {"title": {"text": "time [s]"}, "range": [0, 1.4]}),
        (time, {"title": {"text": "running, of 32 [requests]"}, "range": [0, 36]}),
        height,
        annotations=[
            parts.heading(1, "p99 of TTFT by minute, mean of A, B, C [simulated on recorded steps]"),
        ],
    )
