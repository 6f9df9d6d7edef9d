"""The view of an explorer with a figure and a table, which are computed at each move."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import ipywidgets as widgets
import plotly.graph_objects as go

from course.explore.ahead import QUICK, Ahead, next_stop
from course.explore.displayed import Displayed
from course.explore.fit import beside, blocks, figure_height
from course.explore.ghost import LINE, PALE, Ranges, Shown, has_ghost, joined, ranges_of
from course.explore.plot import Plot, picture
from course.explore.style import notice
from course.explore.table import Rows, html_tables, warnings_of
from course.figures.theme import HEIGHT, TEMPLATE

Explorer = Any  # course.explore.explorer.Explorer, which stands above

SLOW = 0.4
"""Seconds a run may take before the explorer says that it is working."""


@cache
def set_aside() -> None:
    """Keep Python's garbage collector from going over all that the imports have made in the middle of a move.

    In a kernel a full collection of that took 50 to 110 ms, longer than all else between a key and its picture. Once
    is enough, and what later displays leave behind is still collected.
    """
    gc.collect()
    gc.freeze()


class View(Displayed):
    """One display of an explorer: tasks, controls, figure, table, and the wiring between them.

    What stood at rest before a move stays as a ghost: pale in the figure and as a column in the table. Bars and tiles
    have a button in its place.
    """

    def __init__(self, explorer: Explorer) -> None:
        set_aside()
        super().__init__(explorer)
        self._seconds = 0.0
        self._ahead = Ahead(self._computed)
        self._drawn: Shown | None = None
        self._resting: Shown | None = None
        self._held: Ranges = {}
        self._moves = 0
        self._drawn_rows: tuple[Rows, Rows] = ((), ())
        self.table = widgets.HTML()
        self._blocks = 1
        figure, rows = self._first()
        self.height = figure_height(explorer, rows, figure)
        figure.layout.height = self.height
        self.plot = Plot(figure, explorer.title or "Figure")
        self._mark()
        body = widgets.Box([self.plot, self.table])
        if beside(explorer, rows, figure):
            body.add_class("course-beside")
        else:
            body.add_class("course-below")
            self._blocks = blocks(rows)
            self.table.value = html_tables(rows, explorer.title or "Result", (), self._blocks)
        self._assemble([body])

    def _first(self) -> tuple[go.Figure, Rows]:
        """Return figure and rows of the first picture; empty ones if it fails, with the reason in the notice."""
        try:
            self.result = self._begun(self.settings, first=True)
            figure = self.explorer.drawn(self.result)
            rows = self.explorer.rows(self.result)
            self._say(self.result, rows)
        except Exception as error:
            self._fail(error)
            return go.Figure(layout={"template": TEMPLATE, "height": HEIGHT}), ()
        self._drawn = self._resting = Shown(dict(self.settings), rows, ranges_of(figure.to_dict()["layout"]))
        return figure, rows

    def _run(self) -> None:
        positions = {name: widget.value for name, widget in self.controls.items()}
        if self._seconds > SLOW:
            self.notice.value = notice("Working.")
        stood = self.settings
        try:
            settings = self.explorer.settings(positions)  # a browser's sums of steps are off by a rounding
            ready = self._ahead.take(settings)
            result, drawing, layout = ready or self._computed(settings)
            self._draw(settings, result, drawing, layout)
        except Exception as error:
            self._fail(error)
            self._ahead.drop()
        else:
            quick = self.explorer.pure and self._seconds <= QUICK
            self._ahead.plan(next_stop(self.explorer.controls, stood, settings) if quick else None)
        self._mark()
        self._rest.moved()

    def _draw(self, settings: Mapping[str, Any], result: Any, drawing: Any, layout: Any) -> None:
        """Show a result, and where the settings moved, what stood before them."""
        ranges = ranges_of(layout)
        self._leave(settings, ranges)
        # The figure goes first: it is what the eye waits for.
        self.plot.put(drawing, layout | {"height": self.height}, self._held, self._moves if self._before else 0)
        now = Shown(settings, self.explorer.rows(result), ranges)
        self._say(result, now.rows)
        self._drawn = now
        self.settings, self.result, self.error = dict(settings), result, None

    def _begun(self, settings: Mapping[str, Any], first: bool = False) -> Any:
        """Return the result of these settings, the whole of it. first: for the first picture of the display."""
        known = first and settings == self.explorer.defaults
        return self.explorer.default_result() if known else self.explorer.compute(**settings)

    def _computed(self, settings: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Return the result, and traces and layout of its figure; remember how long that took, asked for or ahead."""
        began = time.monotonic()
        result = self._begun(settings)
        pictured = picture(self.explorer.drawn(result))
        self._seconds = time.monotonic() - began
        return result, *pictured

    def _leave(self, settings: Mapping[str, Any], ranges: Ranges) -> None:
        """Keep what stood at rest as the ghost when a move begins, and the axes wide enough for both."""
        if self._still and self._resting is not None and settings != self._resting.settings:
            self._before, self._held, self._still = self._resting, self._resting.ranges, False
            self._moves += 1
            self.changed.value = ""
        self._held = joined(self._held, ranges) if self._before else {}

    def _forget(self) -> None:
        super()._forget()
        self._resting = None

    def _rested(self) -> None:
        moved, self._still = not self._still, True
        if self.error is None and self._drawn is not None:
            self._resting = self._drawn
            self._judge(self._drawn, moved)

    def _change(self, before: Shown, now: Shown) -> str:
        change = super()._change(before, now)
        return change + PALE if change and len(change + PALE) <= LINE and has_ghost(self.plot.traces) else change

    def _mark(self) -> None:
        """Fade the figure while it does not belong to the settings shown."""
        if self.error is not None:
            self.plot.add_class("course-stale")
        else:
            self.plot.remove_class("course-stale")

    def _say(self, result: Any, rows: Rows) -> None:
        before = self._before.rows if self._before else ()
        if (rows, before) != self._drawn_rows or not self.table.value:
            self.table.value = html_tables(rows, self.explorer.title or "Result", before, self._blocks)
            self._drawn_rows = rows, before
        self.notice.value = "".join(notice(text) for text in warnings_of(result))

    def _fail(self, error: Exception) -> None:
        super()._fail(error)
        self.table.value = ""
