"""Static, dynamic and continuous batching in numbers: the gain and its bound, latency against load, and the queue."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from course.figures import theme
from course.run import Run
from course.side_by_side import Gain, LoadPoint

CLAIM = (1.2, 1.3)  # the gain that is often quoted: 20 to 30%


def _pair(x_titles: Sequence[str], y_titles: Sequence[str], height: int) -> go.Figure:
    """Two panels side by side on the course theme."""
    figure = make_subplots(
        rows=1, cols=2, horizontal_spacing=0.13, figure=go.Figure(layout={"template": theme.TEMPLATE, "height": height})
    )
    for column, (x_title, y_title) in enumerate(zip(x_titles, y_titles, strict=True), start=1):
        figure.update_xaxes(title_text=x_title, row=1, col=column)
        figure.update_yaxes(title_text=y_title, row=1, col=column)
    figure.update_layout(margin={"l": 64, "r": 24, "t": 30, "b": 52})
    return figure


def _line(x: Sequence[float], y: Sequence[float], colour: str, name: str, **more: Any) -> go.Scatter:
    line = {"color": theme.COLOURS[colour], "width": 2.5} | more.pop("line", {})
    return go.Scatter(x=theme.rounded(x), y=theme.rounded(y), mode="lines", line=line, name=name, **more)


def _mark(x: Sequence[float], y: Sequence[float], colours: Sequence[str], name: str) -> go.Scatter:
    marker = {"color": [theme.COLOURS[c] for c in colours], "size": 12, "line": {"width": 1.5, "color": theme.INK}}
    return go.Scatter(x=theme.rounded(x), y=theme.rounded(y), mode="markers", marker=marker, name=name)


def gain(sweep: Sequence[Gain], point: Gain, *, height: int = 400) -> go.Figure:
    """Gain of continuous over static at saturation: left against the spread, right against the slots.

    sweep: simulated gains on a grid of slots and CVs, for the lines. point: the setting shown as a dot.
    """
    figure = _pair(
        ("spread of output lengths [CV]", "slots [max_num_seqs]"),
        ("gain in tokens/s [ratio]", "gain in tokens/s [ratio]"),
        height,
    )
    highest = max(g.gain for g in sweep)
    figure.update_yaxes(
        type="log", range=[-0.05, round(float(np.log10(highest * 1.5)), 4)], tickvals=[1, 2, 3, 5, 10, 20, 50]
    )
    batches = sorted({g.max_num_seqs for g in sweep})
    ends = np.log10(batches[0] / 1.1), np.log10(batches[-1] * 1.1)
    figure.update_xaxes(type="log", tickvals=batches, range=theme.rounded(ends), row=1, col=2)
    figure.update_xaxes(range=[-0.05, max(g.output_cv for g in sweep) + 0.05], row=1, col=1)

    slots, spread = point.max_num_seqs, point.output_cv
    by_spread = sorted((g.output_cv, g.gain, g.bound) for g in sweep if g.max_num_seqs == slots)
    by_slots = [(n, *_at_spread(sweep, n, spread)) for n in sorted({g.max_num_seqs for g in sweep})]
    for column, (line, x) in enumerate(((by_spread, spread), (by_slots, slots)), start=1):
        xs, simulated, bound = zip(*line, strict=True)
        figure.add_trace(_line(xs, bound, "theory", "bound", line={"dash": "dash"}), row=1, col=column)
        figure.add_trace(_line(xs, simulated, "continuous", "simulated"), row=1, col=column)
        figure.add_trace(_mark([x], [point.gain], ["continuous"], "this setting"), row=1, col=column)
        figure.add_hrect(
            y0=CLAIM[0], y1=CLAIM[1], fillcolor=theme.COLOURS["waiting"], opacity=0.35, line_width=0, row=1, col=column
        )
    end, highest_gain, highest_bound = by_spread[-1]
    theme.label_line(figure, end, 1.25, 'the claim, "20 to 30%"', theme.INK, row=1, col=1, anchor="right")
    theme.label_line(figure, end, highest_bound, "bound E[max] / mean", "theory", row=1, col=1, anchor="right",
                     yshift=16 if highest_bound > highest_gain else -16)  # fmt: skip
    middle = by_spread[len(by_spread) * 2 // 3]
    theme.label_line(figure, middle[0], middle[1], "simulated", "continuous", row=1, col=1, yshift=-14, shift=12)
    for column, text in ((1, f"<b>{slots} slots</b>"), (2, f"<b>CV {spread:g}</b>")):
        figure.add_annotation(
            x=0.02, y=1.0, xref="x domain" if column == 1 else "x2 domain", yref="y domain", text=text,
            showarrow=False, xanchor="left", yanchor="bottom", font={"size": 15},
        )  # fmt: skip
    return figure


def _at_spread(sweep: Sequence[Gain], slots: int, spread: float) -> tuple[float, float]:
    """Gain and bound for these slots, read between the two nearest spreads of the grid on a log scale."""
    row = sorted((g.output_cv, np.log(g.gain), np.log(g.bound)) for g in sweep if g.max_num_seqs == slots)
    spreads, gains, bounds = zip(*row, strict=True)
    return float(np.exp(np.interp(spread, spreads, gains))), float(np.exp(np.interp(spread, spreads, bounds)))


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
    label = {"e2e": "whole answer", "ttft": "first token"}[metric]
    figure = _pair(
        ("arrival rate [requests/s]", "arrival rate [requests/s]"),
        (f"p{percentile} until the {label} [s]", "output [tokens/s]"),
        height,
    )
    figure.update_yaxes(type="log", tickvals=[0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000], row=1, col=1)
    rate = next(iter(points.values())).rate
    tokens = max(p.tokens_per_second / p.rate for line in curves.values() for p in line)  # of an answer, about
    rates = [p.rate for p in next(iter(curves.values()))]
    figure.add_trace(
        _line([0, rates[-1]], [0, tokens * rates[-1]], "theory", "offered", line={"dash": "dash", "width": 1.5}),
        row=1, col=2,
    )  # fmt: skip
    for name, line in curves.items():
        latency = [getattr(p, metric)[percentile] for p in line]
        figure.add_trace(_line(rates, latency, name, name), row=1, col=1)
        figure.add_trace(_line(rates, [p.tokens_per_second for p in line], name, name), row=1, col=2)
        # Where the lines are apart: continuous at high load, the others at low load, one above and one below.
        at, anchor = (-3, "right") if name == "continuous" else (0, "left")
        up = -14 if name == "dynamic" else 12
        theme.label_line(figure, rates[at], latency[at], name, name, row=1, col=1, anchor=anchor, shift=12, yshift=up)
    names = list(points)
    figure.add_trace(
        _mark([rate] * len(names), [getattr(points[n], metric)[percentile] for n in names], names, "now"), row=1, col=1
    )
    figure.add_trace(
        _mark([rate] * len(names), [points[n].tokens_per_second for n in names], names, "now"), row=1, col=2
    )
    for column in (1, 2):
        figure.add_vline(x=rate, line={"color": "#666666", "width": 1, "dash": "dot"}, row=1, col=column)
    later = rates.index(min(rates, key=lambda r: abs(r - 0.6 * rates[-1])))
    theme.label_line(figure, rates[later], curves["continuous"][later].tokens_per_second, "continuous", "continuous",
                     row=1, col=2, shift=12, yshift=-10)  # fmt: skip
    theme.label_line(figure, rates[-1], curves["static"][-1].tokens_per_second, "static and dynamic", "static",
                     row=1, col=2, anchor="right", yshift=14)  # fmt: skip
    theme.label_line(figure, rates[later], tokens * rates[later], "offered", "theory", row=1, col=2, anchor="right",
                     shift=10, yshift=10)  # fmt: skip
    return figure


def shares(runs: Mapping[str, Run], colours: Mapping[str, str], *, height: int = 340) -> go.Figure:
    """Share of the requests answered within a time, one line a run: how a delay moves everybody's latency."""
    figure = theme.new_figure("latency [ms]", "answered [share of requests]", height=height, xaxis_type="log")
    figure.update_xaxes(tickvals=[1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000])
    figure.update_yaxes(range=[0, 1.02])
    for place, (name, run) in enumerate(runs.items()):
        share = np.linspace(0, 1, 101)
        latency = np.quantile(run.e2e, share) * 1e3
        figure.add_trace(_line(latency, share, colours[name], name))
        at, anchor, up = ((60, "right", 8), (35, "left", -12))[place % 2]
        theme.label_line(
            figure, float(latency[at]), float(share[at]), name, colours[name], anchor=anchor, shift=12, yshift=up
        )
    return figure


def waiting_line(runs: Mapping[str, Run], until: float, *, height: int = 320) -> go.Figure:
    """Requests that wait for a slot over time, one line a run, up to `until` seconds: the operator's graph."""
    figure = theme.new_figure("time [s]", "waiting for a slot [requests]", height=height)
    times = np.linspace(0, until, 121)
    for name, run in runs.items():
        arrived = np.searchsorted(np.sort(run.arrival), times, side="right")
        admitted = np.searchsorted(np.sort(run.admitted), times, side="right")
        waiting = (arrived - admitted).astype(float)
        figure.add_trace(_line(times, waiting, name, name))
        theme.label_line(figure, until * 0.8, float(waiting[96]), name, name, anchor="right", shift=8, yshift=14)
    return figure
