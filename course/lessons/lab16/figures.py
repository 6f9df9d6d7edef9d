"""Figures of lab 16's explorers: two clocks, one run read by many tools, a launched stall.

Put together as plain data, since an explorer builds one with each key press: the tests have plotly check them.
"""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import INKS, Part, heading, line, note
from course.figures.parts import pair as side_by_side
from course.lessons.lab16.load_test import LoadTest, seconds
from course.lessons.lab16.many_tools import SAME_AS_OTHERS, OneRun

LEFT, RIGHT = (0.0, 0.425), (0.59, 1.0)  # two panels side by side, as shares of the width
MARGIN = {"l": 64, "r": 24, "t": 54, "b": 52}
TIMES = [0.01, 0.1, 1.0, 10.0, 100.0]
TIME_TICKS = {"tickvals": TIMES, "ticktext": [seconds(value) for value in TIMES]}
SLOWER = [1.0, 0.1, 0.01, 0.001]  # shares of requests; a percentile is one minus this
REPORT, PLAN, FREE = "decode", "wasted", "theory"
BINS = 120  # along the time of a test


def pair(data: list[Part], left: tuple[Part, Part], right: tuple[Part, Part], height: int, **layout: Any) -> go.Figure:
    """Two panels with room for a row of names above them, and for wide tick labels between them."""
    return side_by_side(data, left, right, height, columns=(LEFT, RIGHT), margin=MARGIN, **layout)


def title(text: str) -> Part:
    """The title of an axis, which names its unit in brackets."""
    return {"title": {"text": text}}


def slowest(moments: np.ndarray, values: np.ndarray, end: float) -> tuple[np.ndarray, np.ndarray]:
    """(middles, largest value) of BINS equal stretches of time from 0 to `end`; stretches without a value left out."""
    place = np.minimum((moments / end * BINS).astype(int), BINS - 1)
    most = np.full(BINS, -np.inf)
    np.maximum.at(most, place, values)
    some = np.isfinite(most)
    return ((np.arange(BINS) + 0.5) * end / BINS)[some], most[some]


def two_clocks(result: LoadTest, *, height: int = 420) -> go.Figure:
    """TTFT of one load test: the slowest in each interval (left), and each by the share of requests slower (right)."""
    planned = result.run.arrival
    end = float(f"{planned[-1] * 1.001:.6g}")
    ways: tuple[tuple[np.ndarray, str, str, dict[str, Any]], ...] = (
        (result.free.ttft, FREE, "no limit", {"dash": "dot", "width": 2}),
        (result.run.ttft, PLAN, "from the plan", {}),
        (result.written, REPORT, "written down", {}),
    )
    share = np.geomspace(1, 1e-3, 61)
    data = []
    for values, colour, name, style in ways:
        data.append(line(*slowest(planned, values, end), colour, name, 1, **style))
        data.append(line(share, np.quantile(values, 1 - share), colour, name, 2, **style))
    top = max(float(values.max()) for values, *_ in ways)
    span = [-2.3, log10(max(top, 0.1)) + 0.25]
    times = {**title("TTFT [s]"), "type": "log", "range": theme.round_digits(span), **TIME_TICKS}
    slower = {
        **title("requests that waited longer [share]"), "type": "log", "range": [0.05, -3.05],
        "tickvals": SLOWER, "ticktext": ["all", "10%", "1%", "0.1%"],
    }  # fmt: skip
    mark = {"type": "line", "xref": "x2", "yref": "y2 domain", "x0": 0.01, "x1": 0.01, "y0": 0, "y1": 1,
            "line": {"color": "#666666", "width": 1, "dash": "dot"}}  # fmt: skip
    left = {**title("planned at [s]"), "range": [0, end]}
    key = legend([(name, colour) for _, colour, name, _ in reversed(ways)])
    notes = [heading(1, "slowest in each interval"), heading(2, "all requests; dotted: the p99"), key]
    return pair(data, (left, times), (slower, times), height, shapes=[mark], annotations=notes)


def legend(names: Sequence[tuple[str, str]], shift: int = 22) -> Part:
    """One row over the panels: what the lines are, each word in the colour of its line."""
    text = " &nbsp;·&nbsp; ".join(f'<span style="color:{INKS[colour]}">{name}</span>' for name, colour in names)
    return note(0, 1, text, xref="paper", yref="paper", yanchor="bottom", yshift=shift)


TOOL_COLOURS = {"ours": "theory", "same": "decode", "other": "wasted"}
SAME = 0.02  # of our TPOT: a reading further off is another quantity


def many_tools(result: OneRun, *, height: int = 440) -> go.Figure:
    """Every tool's mean time per token of one run, as bars; in another colour where it is another number than ours."""
    found = [r for r in result.readings if (r.tool, r.metric) not in SAME_AS_OTHERS]
    ours = found[0].mean
    colours = [TOOL_COLOURS["same" if abs(r.mean / ours - 1) <= SAME else "other"] for r in found]
    colours[0] = TOOL_COLOURS["ours"]
    values = [r.mean * 1e3 for r in found]
    most = float(f"{max(values) * 1.2:.4g}")
    bars = {
        "type": "bar", "orientation": "h", "x": theme.round_digits(values), "y": list(range(len(found))),
        "marker": {"color": [theme.COLOURS[c] for c in colours]}, "customdata": [r.how for r in found],
        "text": [f"{value:.2f} ms" for value in values], "textposition": "outside", "cliponaxis": False,
        "hovertemplate": "%{customdata}<extra></extra>", "name": "mean", "textfont": {"size": 13},
    }  # fmt: skip
    here = theme.round_digits([values[0]])[0]
    level = {"type": "line", "x0": here, "x1": here, "y0": 0, "y1": 1, "yref": "paper"}
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": {"l": 300, "r": 24, "t": 12, "b": 52}, "bargap": 0.25,
        "xaxis": {**title("mean time per token [ms]"), "range": [0, most]},
        "yaxis": {"autorange": "reversed", "tickvals": list(range(len(found))),
                  "ticktext": [f"{r.tool}: {r.metric}" for r in found], "ticks": "", "tickfont": {"size": 13}},
        "shapes": [level | {"line": {"color": "#666666", "width": 1, "dash": "dot"}}],
    }  # fmt: skip
    return theme.plain_figure([bars], layout)


def launched(panels: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]], *, height: int = 280) -> go.Figure:
    """TTFT of each request over the moment of its plan, a panel for each machine.

    panels: (planned, written down, from the plan) [s], by the heading of the panel; one or two of them.
    """
    data, notes, axes = [], [], []
    most = max(float(plan.max()) for _, _, plan in panels.values())
    for panel, (name_of, (moments, written, plan)) in enumerate(panels.items(), start=1):
        for values, colour, name in ((plan, PLAN, "from the plan"), (written, REPORT, "written down")):
            data.append(line(moments, values, colour, name, panel))
        notes.append(heading(panel, name_of))
        span = theme.round_digits([0, 1.1 * most])
        axes.append(({**title("planned at [s]"), "range": theme.round_digits([0, float(moments[-1])])},
                     {**title("TTFT [s]"), "range": span}))  # fmt: skip
    axes += [({"visible": False}, {"visible": False})] * (2 - len(axes))
    key = legend([("written down", REPORT), ("from the plan", PLAN)])
    return pair(data, axes[0], axes[1], height, annotations=[*notes, key])
