"""Figures of lab 03 besides those of its two explorers: four requests by hand, the ticket, live words."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from course.engine.metrics import littles_law, number_in_system
from course.engine.run import Run
from course.figures import parts, theme
from course.figures.parts import Part
from course.lessons.lab03.evening import SHOWN, Evening


def four_by_hand(stays: Sequence[tuple[float, float]], window: tuple[float, float], *, height: int = 330) -> go.Figure:
    """Requests as bars from arrival to answer, and below how many are in the system, with the mean over all.

    stays: (arrival, answer) of each in seconds. window: the seconds of the shaded part.
    """
    arrival, answer = np.array(stays, dtype=float).T
    end = float(answer.max()) + 1
    times, counts = number_in_system(arrival, answer)
    mean = littles_law(arrival, answer, 0, end).L
    lanes = range(len(stays), 0, -1)
    data: list[Part] = [
        parts.line([a, b], [lane, lane], "decode", f"request {len(stays) + 1 - lane}", width=14)
        for (a, b), lane in zip(stays, lanes, strict=True)
    ]
    data.append(parts.words((arrival + answer) / 2, np.array(lanes) + 0.22, [str(n + 1) for n in range(len(stays))],
                            [theme.INK] * len(stays), corner="top center"))  # fmt: skip
    seen = parts.line(np.append(times, end), np.append(counts, 0), "modelled", "in the system", 2)
    data.append(seen | {"line": seen["line"] | {"shape": "hv"}})
    data.append(parts.line([0, end], [mean, mean], "decode", "L", 2, dash="dash"))
    data.append(parts.words([end], [mean], [f"L = {mean:g}"], ["decode"], 2, corner="top left"))
    shade = [
        {"type": "rect", "x0": window[0], "x1": window[1], "y0": 0, "y1": 1, "opacity": 0.35, "layer": "below",
         "line": {"width": 0},
         "xref": parts.axis("x", panel), "yref": parts.axis("y", panel) + " domain",
         "fillcolor": theme.COLOURS["prefill"]}
        for panel in (1, 2)
    ]  # fmt: skip
    time = {"range": [0, end], "dtick": 1}
    return theme.plain_figure(data, {
        "template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN, "shapes": shade,
        "xaxis": time | {"anchor": "y", "showticklabels": False},
        "yaxis": {"anchor": "x", "domain": [0.5, 1], "range": [0.4, len(stays) + 0.9], "showticklabels": False,
                  "title": {"text": "request"}},
        "xaxis2": time | {"anchor": "y2", "title": {"text": "time [s]"}},
        "yaxis2": {"anchor": "x2", "domain": [0, 0.42], "range": [0, float(counts.max()) + 0.7], "dtick": 1,
                   "title": {"text": "number<br>[requests]"}},
    })  # fmt: skip


def operators_graphs(found: Evening, *, height: int = 400) -> go.Figure:
    """Requests arrived and finished, output tokens and median TTFT, minute by minute, one above the other."""
    begin, end = SHOWN
    minutes = slice(begin, end)
    rows: tuple[tuple[str, tuple[tuple[str, np.ndarray, str], ...]], ...] = (
        ("rate<br>[1/s]", (("finished", found.finished, "decode"), ("arrived", found.arrived, "waiting"))),
        ("output<br>[tokens/s]", (("output", found.tokens, "continuous"),)),
        ("TTFT<br>[s]", (("TTFT", found.ttft, "wasted"),)),
    )
    x = np.arange(begin, end) + 0.5
    data: list[Part] = []
    layout = {"template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN | {"l": 90},
              "annotations": [parts.heading(1, "<i>simulated on recorded steps</i>")]}  # fmt: skip
    for row, (title, lines) in enumerate(rows, start=1):
        for name, values, colour in lines:
            data.append(parts.line(x, values[minutes], colour, name, row))
            if len(lines) > 1:
                corner = "bottom right" if name == "arrived" else "top right"
                data.append(parts.words([x[1]], [values[minutes][1]], [name], [colour], row, corner=corner))
        number, top, last = "" if row == 1 else str(row), 1.0 - (row - 1) * 0.355, row == len(rows)
        highest = max(float(values[minutes].max()) for _, values, _ in lines)
        layout[f"xaxis{number}"] = {
            "anchor": f"y{number}", "range": [begin, end], "showticklabels": last, "dtick": 1, "tick0": begin,
            "tickvals": list(range(begin, end + 1, 2)), "ticktext": [f"18:{m}" for m in range(begin, end + 1, 2)],
            "title": {"text": "time of day [hours]" if last else ""},
        }  # fmt: skip
        layout[f"yaxis{number}"] = {
            "anchor": f"x{number}", "domain": theme.round_digits([top - 0.29, top]), "nticks": 4,
            "range": [0, float(f"{1.35 * highest:.3g}")], "title": {"text": title},
        }  # fmt: skip
    return theme.plain_figure(data, layout)


def numbers_in_system(runs: Mapping[str, Run], *, height: int = 300) -> go.Figure:
    """The number in the system over a whole run, a panel and a clock for each machine, with L and λ W as levels."""
    data: list[Part] = []
    headings: list[Part] = []
    clocks: list[Part] = []
    counts: list[Part] = []
    for panel, (name, run) in enumerate(runs.items(), start=1):
        law, end = run.little(), float(run.response.max())
        times, seen = run.number_in_system()
        line = parts.line(np.append(0, times), np.append(0, seen), "modelled", name, panel, width=1.5)
        data += [
            line | {"line": line["line"] | {"shape": "hv"}},
            parts.line([0, end], [law.L] * 2, "decode", "L", panel, width=4),
            parts.line([0, end], [law.arrival_rate * law.W] * 2, "wasted", "λ W", panel, width=4, dash="6px,4px"),
        ]
        headings.append(parts.heading(panel, f"<b>{name}:</b> L = {law.L:.3g}"))
        clocks.append({"title": {"text": "time [s]"}, "range": [0, float(f"{1.02 * end:.4g}")]})
        counts.append({"title": {"text": "in the system [requests]"}, "range": [0, 1 + int(seen.max())]})
    hidden: list[Part] = [{"visible": False}] * (2 - len(clocks))
    clocks, counts = [*clocks, *hidden], [*counts, *hidden]
    return parts.pair(data, (clocks[0], counts[0]), (clocks[1], counts[1]), height, annotations=headings)
