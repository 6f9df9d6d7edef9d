"""The look of every figure: a small template, axes with units, labels beside the lines, numbers that are stable.

The colours and their meanings are in `course.figures.colours`; figures use them as `theme.COLOURS`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from course.base.quick import without_grammar
from course.figures.colours import BADGES, COLOURS, INK, PAPER, badge_html, contrast, ink

with without_grammar():
    from plotly.io import renderers

__all__ = [
    "BADGES",
    "COLOURS",
    "FONT",
    "GRID",
    "HEIGHT",
    "INK",
    "PAPER",
    "TEMPLATE",
    "badge_html",
    "contrast",
    "ink",
    "label_line",
    "new_figure",
    "new_panels",
    "plain_figure",
    "round_digits",
]

FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
HEIGHT = 380
GRID = "#E3E3E3"


def _template() -> go.layout.Template:
    """Half a kilobyte instead of the 7 KB of plotly's own template, which every stored figure would repeat."""
    axis = {
        "automargin": True,
        "ticklabeloverflow": "allow",  # plotly measures every label to hide what leaves the figure: a fifth of its time
        "gridcolor": GRID,
        "linecolor": "#666666",
        "showline": True,
        "ticks": "outside",
        "tickcolor": "#666666",
        "zeroline": False,
        "title": {"standoff": 8},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 15, "color": INK},
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "colorway": [COLOURS[name] for name in ("continuous", "static", "dynamic", "decode", "prefill", "wasted")],
            "margin": {"l": 64, "r": 24, "t": 28, "b": 52},
            "showlegend": False,
            "hovermode": "closest",
            "title": {"font": {"size": 17}, "x": 0, "xref": "paper"},
            "xaxis": axis,
            "yaxis": axis,
        }
    )


TEMPLATE = _template()

# A figure at the end of a cell: no link to a web site in its corner.
renderers["plotly_mimetype"].config = {"displaylogo": False}


def _with_unit(title: str, axis: str) -> str:
    """Return the axis title, which has to name its unit in brackets at the end: 'time [s]', 'queue [requests]'."""
    text = title.strip() if isinstance(title, str) else ""
    opening = {"]": "[", ")": "("}.get(text[-1:], "")
    if not opening or opening not in text or not text[text.rindex(opening) + 1 : -1].strip():
        raise ValueError(
            f"the {axis} axis title {title!r} names no unit: end it with one in brackets, "
            "such as 'time [s]', 'queue length [requests]' or 'utilisation [share]'"
        )
    return text


def new_figure(x_title: str, y_title: str, *, height: int = HEIGHT, **layout: Any) -> go.Figure:
    """Make an empty figure on the course theme.

    x_title: title of the x axis with its unit in brackets, such as "time [s]".
    y_title: title of the y axis with its unit in brackets.
    height: height of the figure in pixels.
    layout: more plotly layout settings in their underscore form, such as `xaxis_type="log"`.

    Raises ValueError: an axis title names no unit.
    """
    axes = {
        "xaxis": {"title": {"text": _with_unit(x_title, "x")}},
        "yaxis": {"title": {"text": _with_unit(y_title, "y")}},
    }
    # In one piece: plotly checks a figure again with every update, and explorers build one for each key press.
    return go.Figure(layout=_merge({"template": TEMPLATE, "height": height, **axes}, layout))


def plain_figure(traces: list[dict[str, Any]], layout: Mapping[str, Any]) -> go.Figure:
    """Make a figure from plain data without plotly's check of each property.

    An explorer builds a figure with every key press, and the check takes longer than all the rest. The tests of the
    figures make it instead, with `go.Figure(figure.to_dict())`.
    """
    return go.Figure(data=traces, layout=dict(layout), _validate=False)


def _merge(base: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with settings laid over it; underscores open a path, as in plotly (xaxis_type)."""
    result = dict(base)
    for key, value in more.items():
        # The only names in a plotly layout that have an underscore of their own.
        first, _, rest = ("", "", "") if key in ("plot_bgcolor", "paper_bgcolor") else key.partition("_")
        if rest:
            result[first] = _merge(result.get(first) or {}, {rest: value})
        elif isinstance(value, Mapping) and isinstance(result.get(key), dict):
            result[key] = _merge(result[key], value)
        else:
            result[key] = value
    return result


def new_panels(
    x_title: str,
    y_titles: Sequence[str],
    *,
    titles: Sequence[str] | None = None,
    heights: Sequence[float] | None = None,
    height: int = HEIGHT,
    **layout: Any,
) -> go.Figure:
    """Make panels one above the other that share the x axis, for timelines that are to be read together.

    x_title: title of the shared x axis with its unit, shown under the lowest panel.
    y_titles: one title with its unit for each panel, from the top.
    titles: an optional heading for each panel.
    heights: relative heights of the panels.
    height: height of the whole figure in pixels.
    layout: more plotly layout settings in their underscore form.

    Raises ValueError: an axis title names no unit.
    """
    figure = go.Figure(_panels(_with_unit(x_title, "x"), *map(_tuple, (y_titles, titles, heights)), height))
    return figure.update_layout(**layout) if layout else figure


@lru_cache(maxsize=32)
def _panels(
    x_title: str,
    y_titles: tuple[str, ...],
    titles: tuple[str, ...] | None,
    heights: tuple[float, ...] | None,
    height: int,
) -> go.Figure:
    """Make the empty panels once: that takes plotly six times as long as copying them."""
    rows = len(y_titles)
    figure = make_subplots(
        rows=rows,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.16 / rows if titles is None else 0.3 / rows,
        row_heights=heights,
        subplot_titles=titles,
        figure=go.Figure(layout={"template": TEMPLATE, "height": height}),
    )
    for row, title in enumerate(y_titles, start=1):
        figure.update_yaxes(title_text=_with_unit(title, "y"), row=row, col=1)
    figure.update_xaxes(title_text=x_title, row=rows, col=1)
    figure.update_annotations(font_size=15)
    return figure


def _tuple(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def label_line(
    figure: go.Figure,
    x: Any,
    y: float,
    text: str,
    colour: str = INK,
    *,
    anchor: str = "left",
    shift: float = 6,
    **where: Any,
) -> None:
    """Write a label beside a line, which spares the reader a legend.

    figure: the figure to write on.
    x: position on the x axis, in its data units.
    y: position on the y axis, in its data units.
    text: the label.
    colour: a key of COLOURS or a #RRGGBB colour; the text is made dark enough to read.
    anchor: which side of the text sits at x: "left", "center" or "right".
    shift: pixels between the point and the text.
    where: `row` and `col` of a panel, or any other annotation setting.

    On a log axis plotly places annotations by the logarithm of the value; this function takes the value itself.
    """
    row, column = where.get("row"), where.get("col")
    axes = list(figure.select_xaxes(row=row, col=column))[:1], list(figure.select_yaxes(row=row, col=column))[:1]
    at_x, at_y = round_digits(
        math.log10(value) if axis and axis[0].type == "log" else value for value, axis in zip((x, y), axes, strict=True)
    )
    figure.add_annotation(
        x=at_x,
        y=at_y,
        text=text,
        showarrow=False,
        xanchor=anchor,
        xshift={"left": shift, "right": -shift}.get(anchor, 0),
        font={"color": ink(colour), "size": 15},
        **where,
    )


def round_digits(values: Iterable[float] | np.ndarray, digits: int = 6) -> list[float | None]:
    """Round one-dimensional `values` to significant digits, so that a stored figure is the same on every machine.

    None stands where a value is NaN or infinite: a gap in the line; JSON knows neither.
    """
    array = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(
            f"round_digits takes one-dimensional values, and this has {array.ndim} dimensions: call it row by row"
        )
    # Through the decimal text: scaling by powers of ten would leave a different last bit here and there.
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in array.tolist()]
