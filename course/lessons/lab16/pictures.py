"""Figures of lab 16 that are no explorers: a client by hand, and the graphs of the ticket."""

import numpy as np
import plotly.graph_objects as go

from course.figures import parts, theme
from course.lessons.lab16 import figures, honest, load_test

PLANNED, TOOK = (0.0, 1.0, 2.0, 3.0), (0.5, 2.5, 0.5, 0.5)
"""Four requests by hand: moments of the plan, and from sending to first token [s]."""
RATES = (8, 12, 16, 20, 24, 32, 40)  # requests/s, one test each
LIMIT = 16


def by_hand(*, height: int = 230) -> go.Figure:
    """Four requests on a time axis, a lane each: waiting in the client, then sent."""
    felt = np.array(honest.felt_ttft(PLANNED, TOOK))
    late = felt - np.array(TOOK)
    lanes = [f"request {number}" for number in range(1, len(PLANNED) + 1)]
    data, starts = [], np.array(PLANNED)
    for name, begin, length, colour in (("waits in the client", starts, late, "wasted"),
                                        ("written down", starts + late, np.array(TOOK), "decode")):  # fmt: skip
        data.append({
            "type": "bar", "orientation": "h", "y": lanes, "base": theme.round_digits(begin),
            "x": theme.round_digits(length), "name": name, "marker": {"color": theme.COLOURS[colour]},
            "hovertemplate": f"{name}: %{{x}} s<extra></extra>",
        })  # fmt: skip
    key = figures.legend([("waits in the client, in no record", "wasted"), ("written down", "decode")], shift=0)
    ends = [
        parts.note(moment + whole + 0.06, place, f"{whole:g} s from the plan")
        for place, (moment, whole) in enumerate(zip(PLANNED, felt.tolist(), strict=True))
    ]
    layout = {
        "template": theme.TEMPLATE, "height": height, "margin": {"l": 90, "r": 24, "t": 30, "b": 48},
        "barmode": "overlay", "bargap": 0.35, "xaxis": {"title": {"text": "time [s]"}, "range": [0, 6.2], "dtick": 1},
        "yaxis": {"autorange": "reversed", "ticks": ""},
        "annotations": [*ends, key],
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def ticket(*, height: int = 400) -> go.Figure:
    """Requests/s answered, mean in flight and p99 of TTFT over the rate asked for, one above the other."""
    tests = [load_test.run_test(rate, LIMIT, 0) for rate in RATES]
    rows = (
        ("answered<br>[requests/s]", [len(test.run) / test.run.makespan for test in tests], "continuous"),
        ("in flight<br>[requests]", [test.in_flight for test in tests], "waiting"),
        ("p99 of TTFT<br>[ms]", [1e3 * float(np.percentile(test.written, 99)) for test in tests], "decode"),
    )
    data, layout = [], {"template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN | {"l": 90}}
    for row, (title, values, colour) in enumerate(rows, start=1):
        data.append(parts.line(RATES, values, colour, title.replace("<br>", " "), row) | {"mode": "lines+markers"})
        end, top, last = "" if row == 1 else str(row), 1.0 - (row - 1) * 0.355, row == len(rows)
        layout[f"xaxis{end}"] = {
            "anchor": f"y{end}", "range": [0, RATES[-1] + 2], "showticklabels": last,
            "title": {"text": "asked for [requests/s]" if last else ""},
        }  # fmt: skip
        layout[f"yaxis{end}"] = {
            "anchor": f"x{end}", "domain": theme.round_digits([top - 0.29, top]),
            "title": {"text": title, "font": {"size": 14}}, "nticks": 4,
            "range": theme.round_digits([0, 1.15 * max(values)]),
        }  # fmt: skip
    return theme.plain_figure(data, layout)
