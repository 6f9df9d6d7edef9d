"""The widgets of one displayed explorer: built afresh for each display, never shared."""

from __future__ import annotations

import time
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from course.explore import redraw
from course.explore.latest import Latest
from course.explore.table import failure, html_table, warnings_of
from course.figures.theme import badge_html

if TYPE_CHECKING:
    from course.explore.explorer import Explorer

SLOW = 0.4
"""Seconds a run may take before the explorer says that it is working."""

# When the kernel is gone, JupyterLab marks every widget with .jupyter-widgets-disconnected; the line of help is shown
# only then. Widget text is set to 14 px, which a projector still carries.
STYLE = """<style>
.course-explorer { --jp-widgets-font-size: 14px; padding: 4px 0; overflow: visible; }
.course-explorer .course-controls { display: grid; grid-template-columns: repeat(auto-fill, minmax(370px, 1fr));
  gap: 2px 24px; align-items: center; overflow: visible; }
.course-explorer .course-controls > * { margin: 2px 0; }
.course-explorer .widget-readout { min-width: 64px; }
.course-explorer table { border-collapse: collapse; font-size: 14px; line-height: 1.5; margin: 0; }
.course-explorer table th { font-weight: normal; text-align: left; padding: 1px 8px; }
.course-explorer table td { text-align: right; padding: 1px 8px; font-variant-numeric: tabular-nums; font-weight: 600; }
.course-explorer table.course-grid thead th { text-align: right; font-weight: 600; }
.course-explorer table.course-pairs { display: block; }
.course-explorer table.course-pairs tbody { display: grid; column-gap: 32px;
  grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); }
.course-explorer table.course-pairs tr { display: flex; justify-content: space-between; border-bottom: 1px solid #ddd; }
.course-explorer .course-notice { border-left: 4px solid #C05500; padding: 2px 10px; margin: 4px 0; font-size: 14px;
  line-height: 1.45; max-width: 900px; white-space: normal; }
.course-explorer .course-stale { opacity: 0.35; }
.course-explorer .course-dead { display: none; }
.course-explorer.jupyter-widgets-disconnected .course-dead,
.jupyter-widgets-disconnected .course-dead { display: block; }
</style>"""
DEAD = (
    '<div class="course-dead course-notice" role="status">The kernel that drew this has stopped, so these controls '
    "move nothing. Run the cell again.</div>"
)


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
        for control, widget in self.controls.items():
            widget.observe(self._moved, names="value")
            widget.tooltip = f"{control}: arrow keys move it"
        self.reset = widgets.Button(description="Reset", tooltip="Back to the settings at the start")
        self.reset.layout.width = "90px"
        self.reset.on_click(lambda _: self.set(explorer.defaults))
        self.notice = widgets.HTML()
        self.table = widgets.HTML()
        self._picture: redraw.Picture = ([], {})
        self.figure = redraw.build(self._picture)
        self._start()
        self.figure_box = widgets.Box([self.figure], layout={"overflow": "hidden", "width": "100%"})
        heading = f"<b>{escape(explorer.title)}</b> " if explorer.title else ""
        badge = badge_html(explorer.badge) if explorer.badge else ""
        grid = widgets.Box([*self.controls.values(), self.reset])
        grid.add_class("course-controls")
        self.root = widgets.VBox(
            [widgets.HTML(STYLE + heading + badge + DEAD), grid, self.notice, self.figure_box, self.table]
        )
        self.root.add_class("course-explorer")

    def _start(self) -> None:
        """Show the result at the default settings, or why there is none."""
        try:
            self.result = self.explorer.default_result()
            self._picture = redraw.picture(self.explorer.figure(self.result))
            self.figure = redraw.build(self._picture)
            self._say(self.result)
        except Exception as error:
            self._fail(error)

    def set(self, settings: dict[str, Any]) -> Any:
        """Move the controls to these settings (already checked), run at once, and return the result.

        Raises:
            Exception: what the run raised; the explorer shows it too.
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

    def _moved(self, _change: Any) -> None:
        if not self._quiet:
            self._latest.ask()

    def _run(self) -> None:
        wanted = {name: widget.value for name, widget in self.controls.items()}
        if self._seconds > SLOW:
            self.notice.value = '<div class="course-notice" role="status">Working.</div>'
        began = time.monotonic()
        try:
            result = self.explorer.compute(**wanted)
            new = redraw.picture(self.explorer.figure(result))
            redraw.redraw(self.figure, self._picture, new)
            self._picture = new
            self._say(result)
        except Exception as error:
            self._fail(error)
        else:
            self.settings, self.result = wanted, result
            if self.error is not None:
                self.error = None
                self.figure_box.remove_class("course-stale")
        self._seconds = time.monotonic() - began

    def _say(self, result: Any) -> None:
        self.table.value = html_table(self.explorer.rows(result), self.explorer.title or "Result")
        self.notice.value = "".join(
            f'<div class="course-notice" role="status">{escape(text)}</div>' for text in warnings_of(result)
        )

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.table.value = ""
        self.notice.value = f'<div class="course-notice" role="status">{escape(failure(error))}</div>'
        if hasattr(self, "figure_box"):
            self.figure_box.add_class("course-stale")
