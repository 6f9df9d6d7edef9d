"""Traces and labels of a figure as plain data.

An explorer builds a figure with each key press. Put together from dictionaries and made in one go by
`theme.plain_figure` that takes a tenth of the time that plotly's `add_...` calls take.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from course.figures import theme

Part = dict[str, Any]
Values = Iterable[float] | np.ndarray
"""Numbers of one axis; NaN makes a gap."""

LEFT, RIGHT = (0.0, 0.435), (0.565, 1.0)  # two panels side by side, as shares of the width
MARGIN = {"l": 64, "r": 24, "t": 30, "b": 52}
INKS = {name: theme.ink(name) for name in theme.COLOURS}


def axis(letter: str, panel: int) -> str:
    """The name of an axis of a panel, counted from 1."""
    return letter if panel == 1 else f"{letter}{panel}"


def place(panel: int) -> Part:
    """The axes of a panel, for a trace."""
    return {"xaxis": axis("x", panel), "yaxis": axis("y", panel)}


def trace(x: Values, y: Values, name: str, panel: int = 1) -> Part:
    """A trace in a panel, without a look of its own."""
    return {"type": "scatter", "x": theme.round_digits(x), "y": theme.round_digits(y), "name": name} | place(panel)


def line(x: Values, y: Values, colour: str, name: str, panel: int = 1, **style: Any) -> Part:
    """A line in a panel."""
    look = {"mode": "lines", "line": {"color": theme.COLOURS[colour], "width": 2.5} | style}
    return trace(x, y, name, panel) | look


def dots(x: Values, y: Values, colours: Sequence[str], name: str, panel: int = 1) -> Part:
    """Marks in a panel, such as where the sliders stand."""
    marker = {"color": [theme.COLOURS[c] for c in colours], "size": 12, "line": {"width": 1.5, "color": theme.INK}}
    return trace(x, y, name, panel) | {"mode": "markers", "marker": marker, "cliponaxis": False}


def words(x: Values, y: Values, texts: Sequence[str], colours: Sequence[str], panel: int = 1, *,
          corner: str | Sequence[str] = "top right") -> Part:  # fmt: skip
    """Labels as one trace: plotly needs 2 ms to redraw an annotation, and none for one text more.

    colours: keys of COLOURS or #RRGGBB. corner: where a text stands from its point, for all of them or for each.
    """
    look = {"mode": "text", "text": list(texts), "hoverinfo": "skip", "cliponaxis": False}
    corners = [corner] * len(texts) if isinstance(corner, str) else list(corner)
    inks = [INKS.get(colour, colour) for colour in colours]
    return trace(x, y, "labels", panel) | look | {"textposition": corners, "textfont": {"color": inks, "size": 15}}


def note(x: float, y: float, text: str, colour: str = theme.INK, anchor: str = "left", **more: Any) -> Part:
    """An annotation; on a log axis x and y are logarithms, as plotly places annotations there."""
    place_x, place_y = theme.round_digits([x, y])
    font = {"color": INKS.get(colour, colour), "size": 15}
    return {"x": place_x, "y": place_y, "text": text, "showarrow": False, "xanchor": anchor, "font": font} | more


def heading(panel: int, text: str) -> Part:
    """A line of text above a panel."""
    where = {"xref": axis("x", panel) + " domain", "yref": axis("y", panel) + " domain"}
    return note(0.02, 1, text, yanchor="bottom", **where)


def pair(
    data: Sequence[Part],
    left: tuple[Part, Part],
    right: tuple[Part, Part],
    height: int,
    *,
    columns: tuple[Sequence[float], Sequence[float]] = (LEFT, RIGHT),
    **layout: Any,
) -> go.Figure:
    """Two panels side by side on the course theme.

    left, right: their x and y axes. columns: their shares of the width. layout: more settings, which win.
    """
    axes = {
        "xaxis": {**left[0], "domain": columns[0], "anchor": "y"},
        "xaxis2": {**right[0], "domain": columns[1], "anchor": "y2"},
        "yaxis": {**left[1], "anchor": "x"},
        "yaxis2": {**right[1], "anchor": "x2"},
    }
    return theme.plain_figure(
        list(data), {"template": theme.TEMPLATE, "margin": MARGIN, "height": height, **axes} | layout
    )
