"""The figure of the case that is done by hand: blocks over time."""

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.figures.parts import MARGIN, Part, line, note, place
from course.lessons.lab08.small_pool import BLOCKS, Small


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
