"""The look of every figure: colours with one meaning each, a small template, labels beside the lines.

Colours are those of Okabe and Ito (2008) and, for the origin of numbers, of Paul Tol's "muted" scheme. Both keep
their distinctions under the common kinds of colour blindness. Text in a light colour would be hard to read on white,
so labels use `ink(colour)`, the same hue made dark enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

COLOURS: Mapping[str, str] = MappingProxyType(
    {
        # what a step, a slot or a request is doing
        "prefill": "#E69F00",
        "decode": "#0072B2",
        "waiting": "#999999",
        "wasted": "#D55E00",
        # the policies
        "static": "#CC79A7",
        "dynamic": "#56B4E9",
        "continuous": "#009E73",
        # where a number comes from
        "measured": "#882255",
        "recorded": "#6B6B00",
        "modelled": "#332288",
        "theory": "#000000",
    }
)

BADGES: Mapping[str, str] = MappingProxyType(
    {
        "modelled": "computed by a model of the hardware",
        "recorded": "recorded earlier on the card named here",
        "measured": "measured just now on this machine",
        "theory": "computed from a formula",
    }
)

FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
HEIGHT = 380
PAPER = "#FFFFFF"
GRID = "#E3E3E3"
INK = "#222222"


def _template() -> go.layout.Template:
    """Half a kilobyte instead of the 7 KB of plotly's own template, which every stored figure would repeat."""
    axis = {
        "automargin": True,
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

    Args:
        x_title: title of the x axis with its unit in brackets, such as "time [s]".
        y_title: title of the y axis with its unit in brackets.
        height: height of the figure in pixels.
        layout: more plotly layout settings in their underscore form, such as `xaxis_type="log"`.

    Raises:
        ValueError: an axis title names no unit.
    """
    figure = go.Figure(layout={"template": TEMPLATE, "height": height})
    figure.update_layout(xaxis_title_text=_with_unit(x_title, "x"), yaxis_title_text=_with_unit(y_title, "y"), **layout)
    return figure


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

    Args:
        x_title: title of the shared x axis with its unit, shown under the lowest panel.
        y_titles: one title with its unit for each panel, from the top.
        titles: an optional heading for each panel.
        heights: relative heights of the panels.
        height: height of the whole figure in pixels.
        layout: more plotly layout settings in their underscore form.

    Raises:
        ValueError: an axis title names no unit.
    """
    rows = len(y_titles)
    figure = make_subplots(
        rows=rows,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.16 / rows if titles is None else 0.3 / rows,
        row_heights=None if heights is None else list(heights),
        subplot_titles=None if titles is None else list(titles),
        figure=go.Figure(layout={"template": TEMPLATE, "height": height}),
    )
    for row, title in enumerate(y_titles, start=1):
        figure.update_yaxes(title_text=_with_unit(title, "y"), row=row, col=1)
    figure.update_xaxes(title_text=_with_unit(x_title, "x"), row=rows, col=1)
    figure.update_annotations(font_size=15)
    figure.update_layout(**layout)
    return figure


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

    Args:
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
    x, y = (
        math.log10(value) if found and found[0].type == "log" else value
        for value, found in zip((x, y), axes, strict=True)
    )
    figure.add_annotation(
        x=x,
        y=y,
        text=text,
        showarrow=False,
        xanchor=anchor,
        xshift={"left": shift, "right": -shift}.get(anchor, 0),
        font={"color": ink(colour), "size": 15},
        **where,
    )


def rounded(values: Iterable[float] | np.ndarray, digits: int = 6) -> list[float | None]:
    """Round to significant digits, so that a stored figure is the same on every machine.

    Args:
        values: numbers, one-dimensional.
        digits: significant digits kept.

    Returns:
        A list of floats, with None where a value is NaN or infinite (a gap in the line; JSON knows neither).
    """
    array = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"rounded takes one-dimensional values, this has {array.ndim} dimensions: call it row by row")
    # Through the decimal text: scaling by powers of ten would leave a different last bit here and there.
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in array.tolist()]


def badge_html(badge: str) -> str:
    """Return the badge that says where numbers come from, as HTML; the part after a colon is free text.

    Args:
        badge: "modelled", "recorded", "measured" or "theory", perhaps with a detail: "recorded: H100, 2025-01".
    """
    kind, _, detail = badge.partition(":")
    meaning = detail.strip() or BADGES.get(kind.strip(), "")
    colour = ink(COLOURS.get(kind.strip(), INK))
    return (
        f'<span style="border:2px solid {colour};border-radius:4px;color:{colour};padding:1px 8px;font-weight:600">'
        f"{escape(kind.strip())}</span>" + (f' <span style="color:#555">{escape(meaning)}</span>' if meaning else "")
    )


def contrast(colour: str, background: str = PAPER) -> float:
    """Return the contrast ratio of two #RRGGBB colours, from 1 to 21, as WCAG 2.2 defines it."""
    light, dark = sorted((_luminance(colour), _luminance(background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def ink(colour: str, ratio: float = 4.5) -> str:
    """Darken a colour until text in it reads well on white (WCAG asks for a contrast of 4.5).

    Args:
        colour: a key of COLOURS or a #RRGGBB colour.
        ratio: the contrast wanted.
    """
    colour = COLOURS.get(colour, colour)
    channels = _channels(colour)
    while contrast(colour) < ratio:
        channels = tuple(value * 0.95 for value in channels)
        colour = "#" + "".join(f"{round(value):02X}" for value in channels)
    return colour


def _channels(colour: str) -> tuple[float, ...]:
    try:
        if len(colour) != 7 or colour[0] != "#":
            raise ValueError
        return tuple(float(int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    except (TypeError, ValueError):
        raise ValueError(
            f"{colour!r} is no colour: give one of {', '.join(COLOURS)} or a form such as #0072B2"
        ) from None


def _luminance(colour: str) -> float:
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
