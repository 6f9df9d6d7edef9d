"""Static, dynamic and continuous batching in numbers: the gain and its bound, latency against load, and the queue.

The figures are put together as plain dictionaries and made in one go: plotly checks every single `add_...` call, which
would take ten times as long, and a slider redraws with each key press.
"""

from collections.abc import Mapping, Sequence
from math import exp, log, log10

import numpy as np
import plotly.graph_objects as go

from course.figures import parts, theme
from course.figures.parts import Part
from course.lessons.lab04.night import EVENING, Night
from course.lessons.lab04.side_by_side import Gain, LoadPoint
from course.lessons.lab04.three_batchers import CLAIM


def gain(sweep: Sequence[Gain], point: Gain, *, height: int = 400) -> go.Figure:
    """Gain of continuous over static at saturation: left against the spread, right against the slots.

    sweep: simulated gains on a grid of slots and CVs, for the lines. point: the setting shown as a dot; its slots must
    be on the grid, its CV may lie between two of it.
    """
    slots, spread = point.max_num_seqs, point.output_cv
    batches = sorted({g.max_num_seqs for g in sweep})
    by_spread = sorted((g.output_cv, g.gain, g.bound) for g in sweep if g.max_num_seqs == slots)
    by_slots = [(n, *_at_spread(sweep, n, spread)) for n in batches]
    data, shapes = [], []
    for panel, line, x in ((1, by_spread, spread), (2, by_slots, slots)):
        xs, simulated, bound = zip(*line, strict=True)
        data += [
            parts.line(xs, bound, "theory", "bound", panel, dash="dash"),
            parts.line(xs, simulated, "continuous", "simulated", panel),
            parts.dots([x], [point.gain], ["continuous"], "this setting", panel),
        ]
        shapes.append(
            {"type": "rect", "xref": parts.axis("x", panel) + " domain", "yref": parts.axis("y", panel),
             "x0": 0, "x1": 1, "y0": CLAIM[0], "y1": CLAIM[1], "fillcolor": theme.COLOURS["waiting"], "opacity": 0.35,
             "line": {"width": 0}}
        )  # fmt: skip
    end, highest, highest_bound = by_spread[-1]
    labels = [
        _label(end, CLAIM[0], 'often said: "20 to 30%"', theme.INK, "right", above=False),
        _label(end, max(highest, highest_bound), *_line_name(highest_bound > highest), "right"),
        # Lower than its line, which falls to the left.
        _label(end, min(highest, highest_bound) / 1.25, *_line_name(highest_bound <= highest), "right", above=False),
    ]
    headings = [parts.heading(1, f"<b>{slots} slots</b>"), parts.heading(2, f"<b>CV {spread:g}</b>")]
    gains = {
        "title": {"text": "gain in tokens/s [ratio]"},
        "type": "log",
        "range": [-0.16, round(log10(max(g.gain for g in sweep) * 1.5), 4)],
        "tickvals": [1, 2, 3, 5, 10, 20, 50],
    }
    ends = theme.round_digits([log10(batches[0] / 1.1), log10(batches[-1] * 1.1)])
    spreads = {"title": {"text": "spread of output lengths [CV]"}, "range": [-0.05, by_spread[-1][0] + 0.05]}
    sizes = {"title": {"text": "slots [max_num_seqs]"}, "type": "log", "tickvals": batches, "range": ends}
    return parts.pair(
        [*data, *_words(labels)], (spreads, gains), (sizes, gains), height, annotations=headings, shapes=shapes
    )


def _line_name(bound: bool) -> tuple[str, str]:
    return ("longest of a batch / mean", "theory") if bound else ("simulated", "continuous")


def _at_spread(sweep: Sequence[Gain], slots: int, spread: float) -> tuple[float, float]:
    """Gain and bound for these slots, read between the two nearest spreads of the grid on a log scale."""
    row = sorted((g.output_cv, log(g.gain), log(g.bound)) for g in sweep if g.max_num_seqs == slots)
    spreads, gains, bounds = zip(*row, strict=True)
    return exp(np.interp(spread, spreads, gains)), exp(np.interp(spread, spreads, bounds))


def against_load(
    curves: Mapping[str, Sequence[LoadPoint]],
    points: Mapping[str, LoadPoint],
    metric: str,
    percentile: int,
    *,
    height: int = 400,
) -> go.Figure:
    """Latency (left) and output tokens/s (right) of each policy against the rate of arrivals.

    curves: the lines, by policy. points: the present setting, by policy. metric: "e2e" or "ttft".
    """
    rates = [p.rate for p in next(iter(curves.values()))]
    names, rate = list(points), next(iter(points.values())).rate
    answer = max(p.tokens_per_second / p.rate for line in curves.values() for p in line)  # tokens, about
    offered = [0, answer * rates[-1]]
    data = [parts.line([0, rates[-1]], offered, "theory", "offered", 2, dash="dash", width=1.5)]
    labels = []
    for name, line in curves.items():
        latency = [getattr(p, metric)[percentile] for p in line]
        data.append(parts.line(rates, latency, name, name))
        data.append(parts.line(rates, [p.tokens_per_second for p in line], name, name, 2))
        # Where the lines are apart: continuous at high load, the others at low load, one above and one below.
        at, side = (-3, "right") if name == "continuous" else (0, "left")
        labels.append(_label(rates[at], latency[at], name, name, side, above=name != "dynamic"))
    data.append(parts.dots([rate] * len(names), [getattr(points[n], metric)[percentile] for n in names], names, "now"))
    data.append(parts.dots([rate] * len(names), [points[n].tokens_per_second for n in names], names, "now", 2))
    later = rates.index(min(rates, key=lambda r: abs(r - 0.6 * rates[-1])))
    tokens = {name: line[later].tokens_per_second for name, line in curves.items()}
    labels += [
        _label(rates[later], tokens["continuous"], "continuous", "continuous", panel=2, above=False),
        _label(rates[-1], tokens["static"], "static and dynamic", "static", "right", panel=2),
        _label(rates[later], answer * rates[later], "offered", "theory", "right", panel=2),
    ]
    # Axes that stay where they are while the rate moves: plotly then draws the marks alone.
    shown = [*points.values(), *(p for line in curves.values() for p in line)]
    low, high = np.log10([pick(getattr(p, metric)[percentile] for p in shown) for pick in (min, max)])
    most = max(offered[-1], *(p.tokens_per_second for p in shown))
    what = {"e2e": "whole answer", "ttft": "first token"}[metric]
    ticks = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300]
    x_axis = {"title": {"text": "arrival rate [requests/s]"}, "range": [0, 1.03 * rates[-1]]}
    y_axis = {"title": {"text": f"p{percentile} until the {what} [s]"}, "type": "log", "tickvals": ticks}
    y_axis["range"] = theme.round_digits([low - 0.06 * (high - low), high + 0.06 * (high - low)], 4)
    output = {"title": {"text": "output [tokens/s]"}, "range": theme.round_digits([0, 1.06 * most], 4)}
    return parts.pair([*data, *_words(labels)], (x_axis, y_axis), (x_axis, output), height)


def operators_graphs(found: Night, *, height: int = 400) -> go.Figure:
    """Rate of arrivals, median time to an answer and GPU busy, hour by hour, one above the other."""
    hours = np.arange(len(found.rate)) + 0.5
    rows = (
        ("requests a second", "rate [1/s]", found.rate, "waiting"),
        ("median time to an answer", "time [s]", found.median, "static"),
        ("GPU busy", "busy [%]", 100 * found.busy, "decode"),
    )
    data: list[Part] = []
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": parts.MARGIN | {"l": 90}}
    headings = []
    for row, (heading, title, values, colour) in enumerate(rows, start=1):
        data.append(parts.line(hours, values, colour, heading, row))
        headings.append(parts.heading(row, heading))
        end, top = "" if row == 1 else str(row), 1.0 - (row - 1) * 0.355
        last = row == len(rows)
        layout[f"xaxis{end}"] = {
            "anchor": f"y{end}", "range": [0, len(hours)], "tickvals": list(range(0, len(hours) + 1, 2)),
            "ticktext": [f"{(EVENING + hour) % 24}:00" for hour in range(0, len(hours) + 1, 2)],
            "showticklabels": last, "title": {"text": "time of day [hours]" if last else ""},
        }  # fmt: skip
        layout[f"yaxis{end}"] = {
            "anchor": f"x{end}", "domain": theme.round_digits([top - 0.25, top]), "rangemode": "tozero",
            "title": {"text": title, "font": {"size": 13}}, "nticks": 4,
        }  # fmt: skip
    return theme.plain_figure(data, layout | {"annotations": headings})


def _label(
    x: float, y: float, text: str, colour: str, side: str = "left", panel: int = 1, *, above: bool = True
) -> Part:
    """A label above or below (x, y), which is at its left or right end."""
    corner = ("top " if above else "bottom ") + {"left": "right", "right": "left"}[side]
    return {"x": x, "y": y, "panel": panel, "text": text, "colour": colour, "corner": corner}


def _words(labels: Sequence[Part]) -> list[Part]:
    """The labels as a trace for each panel."""
    traces = []
    for panel in sorted({label["panel"] for label in labels}):
        here = [label for label in labels if label["panel"] == panel]
        x, y, texts, colours, corners = (
            [label[key] for label in here] for key in ("x", "y", "text", "colour", "corner")
        )
        traces.append(parts.words(x, y, texts, colours, panel, corner=corners))
    return traces
