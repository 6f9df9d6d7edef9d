"""The view of any explorer: controls that a hand or a program moves, tasks, a Reset button, lines for notices.

What is seen between controls and notices is `body`; `work` makes it follow the settings. Figures (view.py) and lanes of
words (words_view.py) differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from course.explore.ghost import Shown, what_changed
from course.explore.keys import with_keys
from course.explore.latest import Latest
from course.explore.rest import Rest
from course.explore.style import EXPLORER, dead, notice
from course.explore.table import failure
from course.explore.task_view import TaskView
from course.explore.tasks import Task, Way
from course.explore.turn import in_turn
from course.figures.theme import badge_html

Explorer = Any  # course.explore.explorer.Explorer, which stands above


class Displayed:
    """One display of an explorer: built afresh for each, never shared.

    A subclass has `_run`, which follows the controls, and `_rested`, which is called once they rest. It calls
    `_assemble` with what is seen. result: what is on the screen, None if there is nothing. error: why there is none.
    """

    idle = "move nothing"
    """What the controls do without a kernel."""
    tooltip = "Go back to the settings at the start"

    def __init__(self, explorer: Explorer) -> None:
        self.explorer: Any = explorer
        self.settings = explorer.left()
        self.result: Any = None
        self.error: Exception | None = None
        self.tasks: TaskView | None = None
        self._quiet = False
        self._still = True
        self._before: Shown | None = None
        self._latest, self._rest = Latest(self._run), Rest(self._rested)
        self.controls = {control.name: control.widget() for control in explorer.controls}
        self._put(self.settings)
        for widget in self.controls.values():
            widget.observe(self._moved, names="value")
        self.reset = widgets.Button(description="Reset", tooltip=self.tooltip)
        self.reset.layout = {"width": "90px", "flex": "none"}
        self.reset.on_click(self._reset)
        self.notice, self.changed = widgets.HTML(), widgets.HTML()
        self.changed.add_class("course-changed")

    def _assemble(self, body: list[widgets.Widget], tasks: bool = True) -> None:
        """Put heading, tasks, controls, body and notices into `root`."""
        explorer = self.explorer
        heading = f"<b>{escape(explorer.title)}</b> " if explorer.title else ""
        badge = badge_html(explorer.badge) if explorer.badge else ""
        head = widgets.HBox([widgets.HTML(EXPLORER + heading + badge + dead(self.idle)), self.reset])
        head.add_class("course-head")
        grid = widgets.Box(list(self.controls.values()))
        grid.add_class("course-controls")
        parts = [head, grid, *body, self.changed, self.notice]
        if explorer.tasks and tasks:
            self.tasks = TaskView(
                Way(explorer.tasks, explorer.record, explorer.shown, explorer.controls), self._show, self._now
            )
            parts.insert(1, self.tasks.root)
        self.root = with_keys(widgets.VBox(parts))
        self.root.add_class("course-explorer")

    def _run(self) -> None:
        raise NotImplementedError

    def _rested(self) -> None:
        raise NotImplementedError

    def _touched(self) -> None:
        """The controls are about to be moved."""

    def _complete(self) -> None:
        """Compute at once whatever `_run` has left to do."""

    @in_turn
    def set(self, settings: Mapping[str, Any]) -> Any:
        """Move the controls to these settings (already checked), run to the end, and return the result.

        Raises Exception: what the run raised; the view shows it too.
        """
        self._put(settings)
        self._touched()
        self._latest.now()
        self._complete()
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
            result = self.set(settings)
            return self.settings, result
        finally:
            self.tasks = tasks

    def _now(self) -> tuple[Mapping[str, Any], Any]:
        return self.settings, None if self.error is not None else self.result

    @in_turn
    def _reset(self, _button: Any) -> None:
        # A failure at the default settings is shown like any other; no caller would catch it.
        self._put(self.explorer.defaults)
        self._forget()
        self._latest.now()
        self._rest.now()
        self._leave_settings()

    def _leave_settings(self) -> None:
        self.explorer.record.leave({"settings": self.settings})

    def _forget(self) -> None:
        """What stood before has no ghost any more."""
        self._before, self._still = None, True
        self.changed.value = ""

    @in_turn
    def _moved(self, _change: Any) -> None:
        if not self._quiet:
            self._grey()
            self._touched()
            self._latest.ask()

    def _put(self, settings: Mapping[str, Any]) -> None:
        """Move the controls; nothing runs."""
        self._quiet = True
        try:
            for name, value in settings.items():
                self.controls[name].value = value
        finally:
            self._quiet = False
        self._grey()

    def _grey(self) -> None:
        """Controls that do nothing now cannot be moved."""
        settings = {name: widget.value for name, widget in self.controls.items()}
        for name in self.explorer.unused:
            self.controls[name].disabled = self.explorer.does_nothing(name, settings)

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.notice.value = notice(failure(error))

    def _judge(self, now: Shown, moved: bool) -> None:
        """Say what changed, and judge the task after a move."""
        change = self._change(self._before, now) if self._before else ""
        self.changed.value = f'<div role="status">{escape(change)}</div>' if change else ""
        if moved:
            self._leave_settings()
        if self.tasks is not None and moved:
            self.tasks.rested(self.settings, self.result)

    def _change(self, before: Shown, now: Shown) -> str:
        return what_changed(self.explorer.controls, before, now)
