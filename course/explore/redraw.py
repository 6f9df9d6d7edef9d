"""Turn the figure on the screen into a new one with as little traffic as possible.

Plotly's own way would be to show a new figure, which makes the browser start from nothing. Here only what differs from
the last figure travels, as one update; traces are exchanged only where their number or their type changes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.basedatatypes import BaseFigure

Picture = tuple[list[dict[str, Any]], dict[str, Any]]


def picture(figure: BaseFigure) -> Picture:
    """Return the traces and the layout of a figure as plain dictionaries."""
    traces = [{key: _sendable(value) for key, value in trace.to_plotly_json().items()} for trace in figure.data]
    return traces, figure.layout.to_plotly_json()


def redraw(shown: BaseFigure, old: Picture, new: Picture) -> None:
    """Change `shown`, which shows `old`, so that it shows `new`.

    Args:
        shown: the figure (or figure widget) to change in place.
        old: the picture it was given last; what the reader did since (zoom, hidden traces) is left alone.
        new: the picture wanted.
    """
    (old_traces, old_layout), (new_traces, new_layout) = old, new
    kept = 0
    while kept < min(len(old_traces), len(new_traces)) and _kind(old_traces[kept]) == _kind(new_traces[kept]):
        kept += 1
    if kept < len(old_traces):
        shown.data = shown.data[:kept]
    with shown.batch_update():
        for trace, before, after in zip(shown.data, old_traces, new_traces, strict=False):
            for path, value in _changes(before, after):
                trace[path] = value
        for path, value in _changes(old_layout, new_layout):
            shown.layout[path] = value
    if kept < len(new_traces):
        shown.add_traces(new_traces[kept:])


def build(new: Picture) -> go.FigureWidget:
    """Make the figure widget; the layout goes through the constructor, since later changes may be lost in Voila."""
    traces, layout = new
    return go.FigureWidget(data=traces, layout=layout)


def _kind(trace: dict[str, Any]) -> tuple[Any, ...]:
    # A trace cannot move between panels or change its type by an update.
    return trace.get("type", "scatter"), trace.get("xaxis"), trace.get("yaxis")


def _changes(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """List (path, new value) for every leaf that differs; a leaf that is gone gets None."""
    found: list[tuple[str, Any]] = []
    for key in dict.fromkeys([*new, *old]):
        before, after, path = old.get(key), new.get(key), f"{prefix}{key}"
        if isinstance(after, dict) and isinstance(before, dict) and path != "template":
            found += _changes(before, after, f"{path}.")
        elif not _same(before, after):
            # Lists of annotations or shapes are emptied by an empty list; None would leave them in the browser.
            gone = [] if isinstance(before, list | tuple) and before and isinstance(before[0], dict) else None
            found.append((path, gone if after is None else after))
    return found


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return (
            isinstance(a, np.ndarray)
            and isinstance(b, np.ndarray)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and a.tobytes() == b.tobytes()
        )
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b) if type(a) is type(b) or not isinstance(a, dict | list | tuple) else False


def _sendable(value: Any) -> Any:
    """Replace NaN and infinities in a list by None, since JSON has no form for them (arrays travel in binary)."""
    if isinstance(value, list | tuple) and any(isinstance(x, float) and not math.isfinite(x) for x in value):
        return [None if isinstance(x, float) and not math.isfinite(x) else x for x in value]
    return value
