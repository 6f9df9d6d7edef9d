"""Figures of lab 03: latency against load with theory beside it, and the number in the system."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.figures import theme
from course.lessons.lab03.one_engine import UnderLoad, Window

OUTLINE = {"width": 1.5, "color": theme.INK}
SECONDS = {"tickvals": [0.01, 0.1, 1, 10, 100], "ticktext": ["0.01", "0.1", "1", "10", "100"]}


def _note(x: float, y: float, text: str, colour: str, **more: Any) -> dict[str, Any]:
    """One annotation as plain data, placed on a log axis by the logarithm of its value."""
    font = {"color": theme.ink(colour), "size": 15}
    return {
        "x": float(f"{x:.6g}"),
        "y": float(f"{y:.6g}"),
        "text": text,
        "showarrow": False,
        "xanchor": "left",
        "xshift": 6,
        "font": font,
    } | more


def _line(x: Sequence[float | None], y: Sequence[float | None], colour: str, **style: Any) -> dict[str, Any]:
    line = {"color": theme.COLOURS[colour], "width": 2.5} | style
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line}


@lru_cache(maxsize=8)
def _frame(x_title: str, y_title: str, height: int) -> dict[str, Any]:
    """The layout of an empty figure as plain data."""
    return theme.new_figure(x_title, y_title, height=height).to_dict()["layout"]


def _figure(traces: list[dict[str, Any]], frame: Mapping[str, Any], **layout: Any) -> go.Figure:
    axes = {name: frame[name] | layout.pop(name, {}) for name in ("xaxis", "yaxis")}
    return theme.plain_figure(traces, {**frame, **layout, **axes})


def latency_against_load(result: UnderLoad) -> go.Figure:
    """Theory for Poisson arrivals as lines up to capacity, the run at the chosen load as marks in the same colours.

    A mark off its line is what theory does not know: bursts, or a queue that had no time to settle.
    """
    known, run = result.curve, result.run
    # Wide enough for every rate of the explorer: a new axis takes the browser many times as long as marks that move.
    right = float(f"{max(42.0, known.capacity * 1.08, result.rate * 1.05):.3g}")
    lines = (
        ("mean E2E", known.mean_e2e, float(run.e2e.mean()), "decode", "solid", 20),
        ("p99 TTFT", known.p99_ttft, float(np.percentile(run.ttft, 99)), "wasted", "solid", 20),
        ("mean TTFT", known.mean_ttft, float(run.ttft.mean()), "prefill", "dash", -20),
    )
    rates, at = theme.round_digits(known.rate), 0.06 * right
    traces = [
        _line(rates, theme.round_digits(values), colour, dash=dash)
        | {"hovertemplate": "%{x:.1f}/s: %{y:.3g} s<extra>" + name + ", theory</extra>"}
        for name, values, _, colour, dash, _ in lines
    ]
    marks = {
        "type": "scatter",
        "mode": "markers",
        "x": theme.round_digits([result.rate] * 3),
        "y": theme.round_digits([here for _, _, here, *_ in lines]),
        "text": [name for name, *_ in lines],
        "marker": {
            "color": [theme.COLOURS[colour] for *_, colour, _, _ in lines],
            "symbol": ["circle", "diamond", "square"],
            "size": 14,
            "line": OUTLINE,
        },
        "hovertemplate": "%{x:.1f}/s: %{y:.3g} s<extra>%{text}, this run</extra>",
        "cliponaxis": False,
    }
    notes = [
        _note(at, math.log10(np.interp(0.15 * right, known.rate, values)), name, colour, yshift=shift)
        for name, values, _, colour, _, shift in lines
    ]
    inside = {"xanchor": "right", "xshift": -6} if known.capacity > 0.6 * right else {}  # the right edge cuts text off
    above = {"yref": "paper", "yanchor": "bottom", "yshift": 2, "xshift": 0}
    notes += [
        _note(known.capacity, 2.45, f"capacity {known.capacity:.1f}/s", "waiting", **inside),
        _note(0, 1, "lines: theory for Poisson arrivals; marks: this run", "theory", **above),
    ]
    wall = {"type": "line", "x0": notes[3]["x"], "x1": notes[3]["x"], "y0": 0, "y1": 1, "yref": "paper"}
    return _figure(
        [*traces, marks],
        _frame("arrival rate [requests/s]", "time, log scale [s]", 420),
        xaxis={"range": [0, right]},
        yaxis={"type": "log", "range": [-2.6, 2.7], **SECONDS},
        annotations=notes,
        shapes=[wall | {"line": {"color": theme.COLOURS["waiting"], "width": 2}}],
    )


def number_over_time(result: Window) -> go.Figure:
    """The number in the system, the window, and both sides of Little's law inside it as level lines."""
    run, law = result.run, result.little
    last = float(f"{run.response.max():.4g}")
    times, counts = run.number_in_system()
    grid = np.linspace(0, last, 700)
    seen = np.append(0, counts)[np.searchsorted(times, grid, side="right")]
    start, end = (float(f"{edge:.6g}") for edge in (result.start, result.end))
    product = law.arrival_rate * law.W
    top = float(f"{max(float(seen.max()), product, 10.0) * 1.15:.4g}")
    apart = max(0.0, 0.08 * top - abs(law.L - product)) / 2  # labels of two close lines step aside
    sign = -1 if product > law.L else 1
    frame = _frame("time [s]", "in the system [requests]", 380)
    return _figure(
        [
            _line(theme.round_digits(grid), seen.tolist(), "modelled", width=1.5, shape="hv"),
            _line([start, end], theme.round_digits([law.L] * 2), "decode", width=4),
            _line([start, end], theme.round_digits([product] * 2), "wasted", width=4, dash="6px,4px"),
        ],
        frame,
        margin={"r": 150},
        xaxis={"range": [0, last]},
        yaxis={"range": [0, top]},
        shapes=[
            {"type": "rect", "x0": start, "x1": end, "y0": 0, "y1": 1, "yref": "paper", "opacity": 0.25}
            | {"fillcolor": theme.COLOURS["prefill"], "line": {"width": 0}}
        ],
        annotations=[
            _note(1, law.L + sign * apart, f"L = {law.L:.1f}", "decode", xref="paper"),
            _note(1, product - sign * apart, f"λ W = {product:.1f}", "wasted", xref="paper"),
        ],
    )
