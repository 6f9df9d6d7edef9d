"""What every displayed explorer has: controls that a hand or a program moves, a Reset button, lines for notices."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from course.explore.ghost import Shown, what_changed
from course.explore.keys import with_keys
from course.explore.style import EXPLORER, dead

if TYPE_CHECKING:
    from course.explore.explorer import Explorer


class Displayed:
    """One display of an explorer. A subclass says what a move and the Reset button do: `_moved`, `_reset`."""

    def __init__(self, explorer: Explorer, tooltip: str) -> None:
        self.settings = dict(explorer.defaults)
        self.error: Exception | None = None
        self._quiet = False
        self._before: Shown | None = None
        self.controls = {control.name: control.widget() for control in explorer.controls}
        for widget in self.controls.values():
            widget.observe(self._moved, names="value")
        self.reset = widgets.Button(description="Reset", tooltip=tooltip)
        self.reset.layout = {"width": "90px", "flex": "none"}
        self.reset.on_click(self._reset)
        self.notice, self.changed = widgets.HTML(), widgets.HTML()
        self.changed.add_class("course-changed")

    def _moved(self, _change: Any) -> None:
        raise NotImplementedError

    def _reset(self, _button: Any) -> None:
        raise NotImplementedError

    def _top(self, heading: str, idle: str) -> list[widgets.Widget]:
        """Heading with the Reset button, and the controls. idle: what they do without a kernel: "move nothing"."""
        head = widgets.HBox([widgets.HTML(EXPLORER + heading + dead(idle)), self.reset])
        head.add_class("course-head")
        grid = widgets.Box(list(self.controls.values()))
        grid.add_class("course-controls")
        return [head, grid]

    def _whole(self, parts: list[widgets.Widget]) -> widgets.Widget:
        root = with_keys(widgets.VBox(parts), list(self.controls.values()))
        root.add_class("course-explorer")
        return root

    def _put(self, settings: Mapping[str, Any]) -> None:
        """Move the controls; nothing runs."""
        self._quiet = True
        try:
            for name, value in settings.items():
                self.controls[name].value = value
        finally:
            self._quiet = False

    def _say_change(self, explorer: Explorer, now: Shown) -> None:
        change = what_changed(explorer.controls, self._before, now) if self._before else ""
        self.changed.value = f'<div role="status">{escape(change)}</div>' if change else ""
