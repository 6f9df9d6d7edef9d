"""A plotly figure on the screen that can be replaced quickly.

Plotly's own FigureWidget sends its 5 MB of JavaScript with every figure, takes three seconds to import in a fresh
kernel, and answers each update with messages to the kernel. This widget sends the library once, then traces and layout
where they changed, and lets plotly.js find the difference (`Plotly.react`).
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import anywidget
import ipywidgets as widgets
import plotly.graph_objects as go
import traitlets
from plotly.offline import get_plotlyjs, get_plotlyjs_version

from course.explore.component import script
from course.explore.ghost import Ranges
from course.figures.in_page import sheet

NONE: Ranges = {}


@cache
def library() -> bytes:
    """Return plotly.js, as the installed plotly package brings it."""
    return get_plotlyjs().encode()


class Drawing(widgets.Widget):
    """What is to be drawn; the browser gets every change of it.

    It is apart from the widget that draws, because anywidget gives up on a widget whose code took more than two seconds
    to load, as on a busy machine, and from then on drops all that the kernel sends to it. A plain widget has no code.
    """

    version = traitlets.Unicode(get_plotlyjs_version()).tag(sync=True)
    plotlyjs = traitlets.Bytes().tag(sync=True)
    label = traitlets.Unicode().tag(sync=True)
    traces: traitlets.List = traitlets.List().tag(sync=True)
    plot_layout: traitlets.Dict = traitlets.Dict().tag(sync=True)
    move = traitlets.Int().tag(sync=True)
    """Number of the move that goes on; with a new one what is drawn becomes the ghost. 0: there is no ghost."""

    _carried = False

    def __init__(self, figure: go.Figure, label: str) -> None:
        traces, layout = picture(figure)
        # The first drawing of a kernel brings plotly.js: asking for it would wait until every queued cell has run.
        carried = b"" if Drawing._carried else library()
        super().__init__(traces=traces, plot_layout=layout, label=label, plotlyjs=carried)
        Drawing._carried = True
        self.on_msg(self._asked)

    def _asked(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if isinstance(content, dict) and content.get("want") == "plotly":
            self.plotlyjs = library()


class Canvas(anywidget.AnyWidget):
    """Draws a Drawing; its own state never changes."""

    _esm = f"const FIGURES = {json.dumps(sheet())};\n" + script("see", "plot")
    drawing_id = traitlets.Unicode().tag(sync=True)


class Plot(widgets.Box):
    """Shows a figure; `show(figure)` replaces it.

    figure: the figure shown first. label: what a screen reader calls the picture.
    """

    def __init__(self, figure: go.Figure, label: str = "") -> None:
        self.drawing = Drawing(figure, label)
        canvas = Canvas(drawing_id=self.drawing.model_id, layout={"width": "100%"})
        super().__init__([canvas], layout={"width": "100%", "overflow": "hidden"})

    @property
    def traces(self) -> list[dict[str, Any]]:
        """The traces shown, as plain data."""
        return self.drawing.traces

    def show(self, figure: go.Figure) -> None:
        """Replace the figure; what stays equal is not sent, and a zoom by the reader is kept."""
        self.put(*picture(figure))

    def put(
        self,
        traces: list[dict[str, Any]],
        layout: dict[str, Any],
        ranges: Ranges = NONE,
        move: int = 0,
    ) -> None:
        """Replace the figure by plain data, as `picture` returns it.

        ranges: of axes, instead of those in the layout. move: see Drawing.
        """
        for name, ends in ranges.items():
            layout[name] = {**layout[name], "range": list(ends[:2])}
        with self.drawing.hold_sync():
            self.drawing.move = move
            self.drawing.traces = traces
            self.drawing.plot_layout = layout


def picture(figure: go.Figure) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return traces and layout as JSON values: arrays in plotly's binary form, NaN and infinities elsewhere as None."""
    plain = figure.to_dict()
    # A constant uirevision keeps zoom and hidden traces when a slider moves.
    layout = {"uirevision": "kept", "autosize": True, **plain["layout"]}
    return [_finite(trace) for trace in plain["data"]], _finite(layout)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) if isinstance(part, float | dict | list | tuple) else part for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
