"""The figure of lab 06's deeper notebook: what the steps of a run hold, second by second."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import INKS, MARGIN, Part, heading, line, place
from course.lessons.lab06.over_time import KINDS, Composition

COLOURS = ("continuous", "prefill", "decode")
"""Of KINDS."""
MOST = 0.8  # decodes for a prompt token, on the axis


def over_time(one: Composition, *, height: int = 330) -> go.Figure:
    """Of each second the share that went to steps of each kind, and decodes for each prompt token."""
    middle = np.arange(one.whole) + 0.5
    parts: list[Part] = [
        place(1)
        | {"type": "bar", "name": kind, "x": theme.round_digits(middle), "y": theme.round_digits(100 * busy, 3),
           "width": 1, "hoverinfo": "name+y", "marker": {"color": theme.COLOURS[colour], "line": {"width": 0}}}
        for kind, colour, busy in zip(KINDS, COLOURS, one.busy, strict=True)
    ]  # fmt: skip
    parts += [
        line([0, one.whole], [one.whole_ratio] * 2, "theory", "whole run", 2, dash="dash", width=1.5),
        line(middle, np.minimum(one.ratio, MOST), "decode", "decodes for a prompt token", 2, width=2.5),
    ]
    key = "  ".join(
        f'<span style="color:{INKS[colour]}">■</span> {kind.split()[0]}'
        for kind, colour in zip(KINDS, COLOURS, strict=True)
    )
    notes = [heading(1, f"time in steps: {key}"), heading(2, "decodes for a prompt token")]
    layout: Part = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes, "barmode": "stack",
        "xaxis": {"anchor": "y", "showticklabels": False, "range": [0, one.whole]},
        "xaxis2": {"anchor": "y2", "title": {"text": "time [s]"}, "range": [0, one.whole]},
        "yaxis": {"anchor": "x", "domain": [0.58, 1.0], "range": [0, 120], "tickvals": [0, 50, 100],
                  "title": {"text": "%"}},
        "yaxis2": {"anchor": "x2", "domain": [0.0, 0.4], "range": [0, MOST], "nticks": 5},
    }  # fmt: skip
    return theme.plain_figure(parts, layout)
