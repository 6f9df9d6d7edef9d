"""The figure of `course compare`: of each latency the measured distribution and the modelled one, a panel each."""

from collections.abc import Mapping
from html import escape

import numpy as np
import plotly.graph_objects as go

from course.calibration import Comparison
from course.figures import parts, theme
from course.figures.parts import Part

PANELS = (("ttft", "TTFT", "s", 1.0), ("tpot", "TPOT", "ms", 1e3), ("itl", "ITL", "ms", 1e3), ("e2e", "E2E", "s", 1.0))
COLUMNS = ([0.0, 0.44], [0.56, 1.0])
ROWS = ([0.58, 1.0], [0.0, 0.4])
SHARES = np.linspace(0, 1, 201)
QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}


def distributions(compared: Comparison, *, height: int = 620) -> go.Figure:
    """Share of requests (of gaps, for ITL) at or below a time: measured and modelled, and where they leave each other.

    A file without requests shows the percentiles that it states as marks.
    """
    data: list[Part] = []
    notes: list[Part] = []
    layout: Part = {"template": theme.TEMPLATE, "height": height, "margin": {"l": 64, "r": 24, "t": 70, "b": 52}}
    for place, (metric, word, unit, scale) in enumerate(PANELS):
        panel = place + 1
        values, weights = compared.modelled[metric]
        modelled = _quantiles(values, weights) * scale
        quantiles = None
        if metric in compared.measured:
            sample = compared.measured[metric]
            quantiles = _quantiles(sample, np.ones(len(sample), dtype=np.int64)) * scale
        marks = _marks(compared.points.get(metric, {}), scale)
        data.append(_line(modelled, "modelled", panel, dash="solid"))
        if quantiles is not None:
            data.append(_line(quantiles, "measured", panel, dash="6px,4px"))
        if marks:
            data.append(_dots(marks, panel))
        layout |= _axes(panel, place, f"{word} [{unit}]")
        missing = "" if quantiles is not None or marks else ": not in the file"
        notes.append(parts.heading(panel, f"{word}{missing}"))
    title = f"{escape(compared.name)}: measured (dashed) and modelled (solid)"
    layout |= {"annotations": notes, "title": {"text": title, "y": 0.985, "yanchor": "top"}}
    return theme.plain_figure(data, layout)


def _quantiles(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The value at each of SHARES, every value counted as often as its weight says; empty if there is none."""
    if not len(values):
        return np.empty(0)
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    place = np.minimum(np.floor(SHARES * upto[-1]).astype(np.int64), upto[-1] - 1)
    return values[order][np.searchsorted(upto, place, side="right")]


def _marks(stated: Mapping[str, float], scale: float) -> list[tuple[float, float, str]]:
    return [(stated[name] * scale, share, name) for name, share in QUANTILES.items() if name in stated]


def _line(x: np.ndarray, name: str, panel: int, *, dash: str) -> Part:
    hover = {"hovertemplate": "%{y:.1%} within %{x:.4g}<extra>" + name + "</extra>"}
    return parts.line(x, SHARES[: len(x)], name, name, panel, dash=dash) | hover


def _dots(marks: list[tuple[float, float, str]], panel: int) -> Part:
    x, y, names = zip(*marks, strict=True)
    look = {"size": 11, "symbol": "diamond", "color": theme.COLOURS["measured"]}
    hover = {"text": list(names), "hovertemplate": "%{text}: %{x:.4g}<extra>measured</extra>"}
    return parts.trace(x, y, "measured", panel) | {"mode": "markers", "marker": look} | hover


def _axes(panel: int, place: int, title: str) -> Part:
    what = "gaps" if title.startswith("ITL") else "requests"
    return {
        f"xaxis{panel if panel > 1 else ''}": {
            "title": {"text": title},
            "domain": COLUMNS[place % 2],
            "anchor": parts.axis("y", panel),
            "rangemode": "tozero",
        },
        f"yaxis{panel if panel > 1 else ''}": {
            "title": {"text": f"share of {what} [0 to 1]"},
            "domain": ROWS[place // 2],
            "anchor": parts.axis("x", panel),
            "range": [0, 1.02],
        },
    }
