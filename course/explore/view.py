"""The widgets of one displayed explorer: built afresh for each display, never shared."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import plotly.graph_objects as go

from course.explore.ahead import QUICK, Ahead, next_stop
from course.explore.displayed import Displayed
from course.explore.fit import beside, blocks, figure_height
from course.explore.ghost import Ranges, Shown, joined, ranges_of
from course.explore.latest import Latest
from course.explore.plot import Plot, picture
from course.explore.rest import Rest
from course.explore.style import notice
from course.explore.table import Rows, failure, html_tables, warnings_of
from course.explore.task_view import TaskView
from course.explore.tasks import Task, Way
from course.explore.turn import in_turn
from course.figures.theme import HEIGHT, TEMPLATE, badge_html

if TYPE_CHECKING:
    from course.explore.explorer import Explorer

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

    What stood at rest before a move stays as a ghost: pale in the figure and as a column in the table.
    """

    def __init__(self, explorer: Explorer) -> None:
        set_aside()
        super().__init__(explorer, "Go back to the settings at the start")
        self.explorer = explorer
        self.result: Any = None
        self._seconds = 0.0
        self._latest = Latest(self._run)
        self._ahead = Ahead(self._computed)
        self._rest = Rest(self._rested)
        self._still = True
        self._now: Shown | None = None
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
        heading = f"<b>{escape(explorer.title)}</b> " if explorer.title else ""
        badge = badge_html(explorer.badge) if explorer.badge else ""
        body = widgets.Box([self.plot, self.table])
        if beside(explorer, rows, figure):
            body.add_class("course-beside")
        else:
            body.add_class("course-below")
            self._blocks = blocks(rows)
            self.table.value = html_tables(rows, explorer.title or "Result", (), self._blocks)
        self.tasks: TaskView | None = None
        parts = [*self._top(heading + badge, "move nothing"), body, self.changed, self.notice]
        if explorer.tasks:
            self.tasks = TaskView(Way(explorer.tasks, explorer.record, explorer.shown), self._show, self._shown)
            parts.insert(1, self.tasks.root)
        self.root = self._whole(parts)

    def _first(self) -> tuple[go.Figure, Rows]:
        """Return figure and rows at the default settings; empty ones if they fail, with the reason in the notice."""
        try:
            self.result = self.explorer.default_result()
            figure = self.explorer.drawn(self.result)
            rows = self.explorer.rows(self.result)
            self._say(self.result, rows)
        except Exception as error:
            self._fail(error)
            return go.Figure(layout={"template": TEMPLATE, "height": HEIGHT}), ()
        self._now = self._resting = Shown(dict(self.settings), rows, ranges_of(figure.to_dict()["layout"]))
        return figure, rows

    @in_turn
    def set(self, settings: dict[str, Any]) -> Any:
        """Move the controls to these settings (already checked), run at once, and return the result.

        Raises Exception: what the run raised; the explorer shows it too.
        """
        self._put(settings)
        self._latest.now()
        self._rest.now()
        if self.error is not None:
            raise self.error
        return self.result

    @in_turn
    def _show(self, task: Task) -> tuple[Mapping[str, Any], Any]:
        """Move the controls to where a task is solved; nothing is judged."""
        settings = self.explorer.settings_of(task)
        tasks, self.tasks = self.tasks, None
        try:
            self._put(settings)
            self._latest.now()
            self._rest.now()
        finally:
            self.tasks = tasks
        if self.error is not None:
            raise self.error
        return self.settings, self.result

    def _shown(self) -> tuple[Mapping[str, Any], Any]:
        return self.settings, None if self.error is not None else self.result

    @in_turn
    def _reset(self, _button: Any) -> None:
        # A failure at the default settings is shown like any other; no caller would catch it.
        self._put(self.explorer.defaults)
        self._before, self._resting, self._still = None, None, True
        self._latest.now()
        self._rest.now()

    @in_turn
    def _moved(self, _change: Any) -> None:
        if not self._quiet:
            self._latest.ask()

    def _run(self) -> None:
        positions = {name: widget.value for name, widget in self.controls.items()}
        if self._seconds > SLOW:
            self.notice.value = notice("Working.")
        stood = self.settings
        try:
            settings = self.explorer.settings(positions)  # a browser's sums of steps are off by a rounding
            ready = self._ahead.take(settings)
            result, drawing, layout = ready or self._computed(settings)
            ranges = ranges_of(layout)
            self._leave(settings, ranges)
            # The figure goes first: it is what the eye waits for.
            self.plot.put(drawing, layout | {"height": self.height}, self._held, self._moves if self._before else 0)
            now = Shown(settings, self.explorer.rows(result), ranges)
            self._say(result, now.rows)
        except Exception as error:
            self._fail(error)
            self._ahead.drop()
        else:
            self._now = now
            self.settings, self.result, self.error = settings, result, None
            quick = self.explorer.pure and self._seconds <= QUICK
            self._ahead.plan(next_stop(self.explorer.controls, stood, settings) if quick else None)
        self._mark()
        self._rest.moved()

    def _computed(self, settings: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Return the result, and traces and layout of its figure; remember how long that took, asked for or ahead."""
        began = time.monotonic()
        result = self.explorer.compute(**settings)
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

    def _rested(self) -> None:
        """Say what changed, and judge the task, once the controls rest."""
        moved, self._still = not self._still, True
        if self.error is not None or self._now is None:
            return
        self._resting = self._now
        self._say_change(self.explorer, self._now)
        if self.tasks is not None and moved:
            self.tasks.rested(self.settings, self.result)

    def _mark(self) -> None:
        """Fade the figure while it does not belong to the settings shown."""
        if self.error is not None:
            self.plot.add_class("course-stale")
        elif "course-stale" in self.plot._dom_classes:
            self.plot.remove_class("course-stale")

    def _say(self, result: Any, rows: Rows) -> None:
        before = self._before.rows if self._before else ()
        if (rows, before) != self._drawn_rows or not self.table.value:
            self.table.value = html_tables(rows, self.explorer.title or "Result", before, self._blocks)
            self._drawn_rows = rows, before
        self.notice.value = "".join(notice(text) for text in warnings_of(result))

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.table.value = ""
        self.notice.value = notice(failure(error))
