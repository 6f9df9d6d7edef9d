"""The widgets of one displayed explorer: built afresh for each display, never shared."""

from __future__ import annotations

import time
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import plotly.graph_objects as go

from course.explore.keys import with_keys
from course.explore.latest import Latest
from course.explore.plot import Plot
from course.explore.style import EXPLORER, dead, notice
from course.explore.table import failure, html_table, warnings_of
from course.figures.theme import HEIGHT, TEMPLATE, badge_html

if TYPE_CHECKING:
    from course.explore.explorer import Explorer

SLOW = 0.4
"""Seconds a run may take before the explorer says that it is working."""


class View:
    """One display of an explorer: controls, figure, table, and the wiring between them."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.settings = dict(explorer.defaults)
        self.result: Any = None
        self.error: Exception | None = None
        self._quiet = False
        self._seconds = 0.0
        self._latest = Latest(self._run)
        self.controls = {control.name: control.widget() for control in explorer.controls}
        for widget in self.controls.values():
            widget.observe(self._moved, names="value")
        self.reset = widgets.Button(description="Reset", tooltip="Back to the settings at the start")
        self.reset.layout = {"width": "90px", "flex": "none"}
        self.reset.on_click(self._reset)
        self.notice = widgets.HTML()
        self.table = widgets.HTML()
        self.plot = Plot(self._first(), explorer.title or "Figure")
        self._mark()
        heading = f"<b>{escape(explorer.title)}</b> " if explorer.title else ""
        badge = badge_html(explorer.badge) if explorer.badge else ""
        head = widgets.HBox([widgets.HTML(EXPLORER + heading + badge + dead("move nothing")), self.reset])
        head.add_class("course-head")
        grid = widgets.Box(list(self.controls.values()))
        grid.add_class("course-controls")
        self.root = with_keys(widgets.VBox([head, grid, self.notice, self.plot, self.table]))
        self.root.add_class("course-explorer")

    def _first(self) -> go.Figure:
        """Return the figure at the default settings; an empty one if they fail, with the reason in the notice."""
        try:
            self.result = self.explorer.default_result()
            figure = self.explorer.drawn(self.result)
            self._say(self.result)
            return figure
        except Exception as error:
            self._fail(error)
            return go.Figure(layout={"template": TEMPLATE, "height": HEIGHT})

    def set(self, settings: dict[str, Any]) -> Any:
        """Move the controls to these settings (already checked), run at once, and return the result.

        Raises Exception: what the run raised; the explorer shows it too.
        """
        self._quiet = True
        try:
            for name, value in settings.items():
                self.controls[name].value = value
        finally:
            self._quiet = False
        self._latest.now()
        if self.error is not None:
            raise self.error
        return self.result

    def _reset(self, _button: Any) -> None:
        # A failure at the default settings is shown like any other; there is nobody here to catch it.
        self._quiet = True
        for name, value in self.explorer.defaults.items():
            self.controls[name].value = value
        self._quiet = False
        self._latest.now()

    def _moved(self, _change: Any) -> None:
        if not self._quiet:
            self._latest.ask()

    def _run(self) -> None:
        wanted = {name: widget.value for name, widget in self.controls.items()}
        if self._seconds > SLOW:
            self.notice.value = notice("Working.")
        began = time.monotonic()
        try:
            result = self.explorer.compute(**wanted)
            self.plot.show(self.explorer.drawn(result))
            self._say(result)
        except Exception as error:
            self._fail(error)
        else:
            self.settings, self.result, self.error = wanted, result, None
        self._mark()
        self._seconds = time.monotonic() - began

    def _mark(self) -> None:
        """Fade the figure while it does not belong to the settings shown."""
        if self.error is not None:
            self.plot.add_class("course-stale")
        elif "course-stale" in self.plot._dom_classes:
            self.plot.remove_class("course-stale")

    def _say(self, result: Any) -> None:
        self.table.value = html_table(self.explorer.rows(result), self.explorer.title or "Result")
        self.notice.value = "".join(notice(text) for text in warnings_of(result))

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.table.value = ""
        self.notice.value = notice(failure(error))
