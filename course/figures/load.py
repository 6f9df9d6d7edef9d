"""Figures of lab 03: latency against load with theory beside it, the number in the system, and an overload."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.one_engine import UnderLoad, Window
from course.run import Run

OUTLINE = {"width": 1.5, "color": theme.INK}
SECONDS = {"tickvals": [0.01, 0.1, 1, 10, 100], "ticktext": ["10 ms", "100 ms", "1 s", "10 s", "100 s"]}


def latency_against_load(result: UnderLoad) -> go.Figure:
    """Theory for Poisson arrivals as lines up to capacity, the run at the chosen load as marks in the same colours.

    A mark off its line is what theory does not know: bursts, or a queue that had no time to settle.
    """
    known, run = result.curve, result.run
    right = max(known.capacity * 1.25, result.rate * 1.05)
    figure = theme.new_figure("arrival rate [requests/s]", "time, log scale [s]", height=420)
    figure.update_yaxes(type="log", range=[-2.35, 2.2], **SECONDS)
    figure.update_xaxes(range=[0, float(f"{right:.3g}")])
    p99 = float(np.percentile(run.ttft, 99))
    for name, values, here, colour, dash, symbol, shift in (
        ("mean E2E", known.mean_e2e, float(run.e2e.mean()), "decode", "solid", "circle", 12),
        ("p99 TTFT", known.p99_ttft, p99, "wasted", "solid", "diamond", 12),
        ("mean TTFT", known.mean_ttft, float(run.ttft.mean()), "prefill", "dash", "square", -12),
    ):
        figure.add_scatter(
            x=theme.rounded(known.rate),
            y=theme.rounded(values),
            mode="lines",
            line={"color": theme.COLOURS[colour], "width": 2.5, "dash": dash},
            hovertemplate="%{x:.1f}/s: %{y:.3g} s<extra>" + name + ", theory</extra>",
        )
        figure.add_scatter(
            x=theme.rounded([result.rate]),
            y=theme.rounded([here]),
            mode="markers",
            marker={"color": theme.COLOURS[colour], "size": 14, "symbol": symbol, "line": OUTLINE},
            hovertemplate="%{x:.1f}/s: %{y:.3g} s<extra>" + name + ", this run</extra>",
            cliponaxis=False,
        )
        theme.label_line(
            figure, 0.06 * right, float(np.interp(0.15 * right, known.rate, values)), name, colour, yshift=shift
        )
    figure.add_vline(x=float(f"{known.capacity:.4g}"), line={"color": theme.COLOURS["waiting"], "width": 2})
    theme.label_line(figure, known.capacity, 90, f"capacity {known.capacity:.1f}/s", "waiting")
    theme.label_line(figure, 0, 90, "lines: theory for Poisson arrivals; marks: this run", "theory")
    return figure


def number_over_time(result: Window) -> go.Figure:
    """The number in the system, the window, and both sides of Little's law inside it as level lines."""
    run, law = result.run, result.little
    last = float(run.response.max())
    times, counts = run.number_in_system()
    grid = np.linspace(0, last, 700)
    seen = np.append(0, counts)[np.searchsorted(times, grid, side="right")]
    figure = theme.new_figure("time [s]", "in the system [requests]", height=380, margin={"r": 150})
    figure.add_scatter(
        x=theme.rounded(grid),
        y=seen.tolist(),
        mode="lines",
        line={"color": theme.COLOURS["modelled"], "width": 1.5, "shape": "hv"},
        name="waiting or running",
    )
    start, end = float(f"{result.start:.6g}"), float(f"{result.end:.6g}")
    figure.add_vrect(x0=start, x1=end, fillcolor=theme.COLOURS["prefill"], opacity=0.25, line_width=0)
    product = law.arrival_rate * law.W
    for value, colour, dash in ((law.L, "decode", "solid"), (product, "wasted", "dash")):
        figure.add_scatter(
            x=[start, end],
            y=theme.rounded([value] * 2),
            mode="lines",
            line={"color": theme.COLOURS[colour], "width": 4, "dash": dash},
        )
    top = max(float(seen.max()), product, 10.0) * 1.15
    figure.update_yaxes(range=[0, float(f"{top:.4g}")])
    figure.update_xaxes(range=[0, float(f"{last:.4g}")])
    apart = max(0.0, 0.08 * top - abs(law.L - product)) / 2  # labels of two close lines step aside
    sign = -1 if product > law.L else 1
    for value, shift, text, colour in (
        (law.L, sign * apart, f"L = {law.L:.1f}", "decode"),
        (product, -sign * apart, f"λ W = {product:.1f}", "wasted"),
    ):
        theme.label_line(figure, 1, value + shift, text, colour, xref="paper")
    return figure


def tail_over_mean(load: Sequence[float], ratios: Mapping[str, Sequence[float]]) -> go.Figure:
    """p99 over mean against load, one line a queue, each labelled at its highest point (a level one in its middle)."""
    figure = theme.new_figure("load [share of capacity]", "p99 / mean [ratio]", height=360)
    styles = zip(ratios.items(), ("dash", "solid", "dot"), ("theory", "modelled", "decode"), strict=False)
    for (name, values), dash, colour in styles:
        values = np.asarray(values)
        figure.add_scatter(
            x=theme.rounded(np.asarray(load)),
            y=theme.rounded(values),
            mode="lines",
            line={"color": theme.COLOURS[colour], "width": 2.5, "dash": dash},
            name=name,
        )
        top = int(values.argmax()) if np.ptp(values) > 0.01 * values.max() else len(values) // 3
        theme.label_line(figure, float(load[top]), float(values[top]), name, colour, anchor="center", yshift=14)
    figure.update_yaxes(range=[0, float(f"{1.15 * max(max(v) for v in ratios.values()):.4g}")])
    figure.update_xaxes(range=[0, 1])
    return figure


def overload(runs: Mapping[str, Run], slopes: Mapping[str, float]) -> go.Figure:
    """Who is in the system (above) and the TTFT of each request by its arrival (below), a line a run.

    slopes: requests/s by which theory says each queue grows, drawn from the origin; 0 draws none.
    """
    figure = theme.new_panels("time since start [s]", ("number [requests]", "TTFT [s]"), height=480, margin={"r": 90})
    colours = ("continuous", "wasted", "prefill")
    end = max(float(run.arrival.max()) for run in runs.values())
    for (name, run), colour in zip(runs.items(), colours, strict=False):
        times, counts = run.number_in_system()
        grid = np.linspace(0, float(run.arrival.max()), 300)
        seen = np.append(0, counts)[np.searchsorted(times, grid, side="right")]
        line = {"color": theme.COLOURS[colour], "width": 2}
        figure.add_scatter(x=theme.rounded(grid), y=seen.tolist(), mode="lines", line=line, name=name, row=1, col=1)
        few = np.linspace(0, len(run) - 1, 300).astype(int)
        figure.add_scatter(
            x=theme.rounded(run.arrival[few]),
            y=theme.rounded(run.ttft[few]),
            mode="lines",
            line=line,
            name=name,
            row=2,
            col=1,
        )
        theme.label_line(figure, float(grid[-1]), float(seen[-1]), name, colour, row=1, col=1)
        theme.label_line(figure, float(grid[-1]), float(run.ttft[few[-1]]), name, colour, row=2, col=1)
        if slope := slopes.get(name, 0.0):
            figure.add_scatter(
                x=theme.rounded([0, grid[-1]]),
                y=theme.rounded([0, slope * grid[-1]]),
                mode="lines",
                line={"color": theme.COLOURS["theory"], "width": 2, "dash": "dash"},
                row=1,
                col=1,
            )
            theme.label_line(
                figure, 0.5 * grid[-1], 0.5 * slope * grid[-1], f"grows by {slope:.1f}/s", "theory", yshift=-12,
                row=1, col=1,
            )  # fmt: skip
    figure.update_xaxes(range=[0, float(f"{end * 1.02:.4g}")])
    return figure
