"""The graphs that come with the ticket of lab 08: what an operator has before anybody asks for the cache's own."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.engine.run import Run
from course.figures import theme
from course.figures.parts import MARGIN, line, note
from course.lessons.lab08.figures import queued
from course.lessons.lab08.kv_pool import UnderLoad


def ticket(result: UnderLoad, *, height: int = 360) -> go.Figure:
    """What an operator has before anybody asks for more: who runs and who waits, output, and the longest gap."""
    run, steps = result.run, result.run.steps
    edges = np.linspace(0, float(steps.end[-1]), 41)
    width = float(edges[1])
    at = np.minimum(np.searchsorted(steps.end, edges), len(steps) - 1)
    bins = np.minimum((steps.start / width).astype(int), 39)
    said = np.bincount(bins, weights=steps.decodes, minlength=40) / width
    gaps = _longest_gaps(run, edges)
    data = [
        line(edges, steps.running[at], "decode", "running", 1, width=2),
        line(edges, queued(run.arrival, run.admitted, edges), "waiting", "waiting", 1, width=2),
        line(edges[:-1] + width / 2, said, "decode", "output", 2, width=2),
        line(edges[:-1] + width / 2, gaps, "wasted", "longest gap", 3, width=2),
    ]
    heads = ((1, "running (blue) and waiting (grey)"), (2, "output"), (3, "the longest gap in an answer"))
    notes = [note(0.005, 1, text, yanchor="bottom", xref=f"x{p if p > 1 else ''} domain",
                  yref=f"y{p if p > 1 else ''} domain") for p, text in heads]  # fmt: skip
    layout: dict[str, Any] = {
        "template": theme.TEMPLATE, "height": height, "margin": MARGIN, "annotations": notes,
        "xaxis": {"anchor": "y", "showticklabels": False, "matches": "x3"},
        "xaxis2": {"anchor": "y2", "showticklabels": False, "matches": "x3"},
        "xaxis3": {"anchor": "y3", "title": {"text": "time [s]"}, "range": theme.round_digits([0, edges[-1]])},
        "yaxis": {"title": {"text": "requests"}, "domain": [0.74, 0.95], "anchor": "x", "rangemode": "tozero"},
        "yaxis2": {"title": {"text": "tokens/s"}, "domain": [0.37, 0.62], "anchor": "x2", "rangemode": "tozero"},
        "yaxis3": {"title": {"text": "gap [s]"}, "domain": [0, 0.25], "anchor": "x3", "rangemode": "tozero",
                   "dtick": 1},
    }  # fmt: skip
    return theme.plain_figure(data, layout)


def _longest_gaps(run: Run, edges: np.ndarray) -> np.ndarray:
    """The longest gap between two tokens of one answer that ends in each interval [s]; 0 where none does."""
    longest = np.zeros(len(edges) - 1)
    for request in range(len(run)):
        times = run.token_times(request)
        place = np.minimum(np.searchsorted(edges, times[1:]) - 1, len(longest) - 1)
        np.maximum.at(longest, place, np.diff(times))
    return longest
