"""The widgets of an explorer's tasks: one open at a time, with what was said about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from course.explore.table import failure
from course.explore.tasks import DONE, LETTERS, Read, Task, Way, Why
from course.explore.turn import in_turn

MARKS = {DONE: ("✓", "done"), "shown": ("◐", "shown"), "": ("○", "not done yet")}


class TaskView:
    """The tasks of one displayed explorer.

    way: how far the learner has come.
    move: moves the controls to settings and returns the result there.
    now: settings and result that are on the screen; the result is None if the last run failed.
    """

    def __init__(
        self, way: Way, move: Callable[[Task], tuple[Mapping[str, Any], Any]], now: Callable[[], tuple[Any, Any]]
    ) -> None:
        self.way, self._move, self._now = way, move, now
        self.head = widgets.HTML()
        self.text = widgets.HTML()
        self.said = widgets.HTML()
        self.field = widgets.Text(placeholder="type a number")
        self.field.layout = {"width": "150px", "flex": "none"}
        self.unit = widgets.HTML()
        self.check = _button("Check", "Check the answer")
        self.show = _button("Show me", "Move the controls to a setting that solves the task")
        self.back = _button("Back", "Go back to the previous task")
        self.next = _button("Next task", "Go on to the next task")
        self.options = widgets.Box()
        self.options.add_class("course-options")
        self.radio: widgets.RadioButtons | None = None
        self.field.on_msg(self._entered)
        self.check.on_click(self._checked)
        self.show.on_click(self._showed)
        self.back.on_click(lambda _button: self._go(-1))
        self.next.on_click(lambda _button: self._go(1))
        self.buttons = widgets.HBox()
        self.buttons.add_class("course-task-buttons")
        top = widgets.HBox([self.head, self.buttons])
        top.add_class("course-head")
        self.entry = widgets.HBox([self.field, self.unit])
        self.root = widgets.VBox([top, self.text, self.options, self.entry, self.said])
        self.root.add_class("course-tasks")
        self._draw()

    def rested(self, settings: Mapping[str, Any], result: Any) -> None:
        """Judge what stands on the screen, after a move."""
        if self.way.open:
            self._judge(lambda: self.way.rested(settings, result))

    def _entered(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """The Enter key in the field."""
        if content == {"event": "submit"}:
            self._checked(None)

    @in_turn
    def _checked(self, _sender: Any) -> None:
        settings, result = self._now()
        task = self.way.task
        if not self.way.open:
            return
        if isinstance(task, Read) and result is None:
            self.way.said = "There is nothing to read yet: the run is not complete, or it failed."
            self._say()
        elif isinstance(task, Read):
            self._judge(lambda: self.way.typed(self.field.value, settings, result))
        elif isinstance(task, Why) and self.radio is not None:
            index = self.radio.index
            if index is None:
                self.way.said = "Choose one first."
                self._say()
            else:
                self._judge(lambda: self.way.chosen(index))

    @in_turn
    def _showed(self, _button: Any) -> None:
        self._judge(lambda: self.way.shown(*self._move(self.way.task)))

    def _judge(self, judge: Callable[[], object]) -> None:
        """Say what was found; a task that fails at this setting says so, and stays open."""
        try:
            judge()
        except Exception as error:
            self.way.said = failure(error)
            self.way.misses += 1
        self._say()

    @in_turn
    def _go(self, step: int) -> None:
        self.way.go(step)
        self._draw()

    def _draw(self) -> None:
        """Show the task looked at."""
        task = self.way.task
        self.text.value = f'<div class="course-task-text">{escape(task.text)}</div>'
        self.field.value = ""
        self.unit.value = escape(task.unit) if isinstance(task, Read) else ""
        self.radio = None
        if isinstance(task, Why):
            texts = [f"{letter}) {text}" for letter, (text, _) in zip(LETTERS, task.options, strict=False)]
            self.radio = widgets.RadioButtons(options=texts, index=None, layout={"width": "auto"})
        self.options.children = (self.radio,) if self.radio else ()
        self._say()

    def _say(self) -> None:
        """Show what was said, the marks, and the buttons that do something now."""
        way, task = self.way, self.way.task
        many = len(way.tasks)
        marks = []
        for position, each in enumerate(way.tasks):
            mark, words = MARKS[way.states.get(each.id, "")]
            here = " course-here" if position == way.at else ""
            marks.append(f'<span class="course-mark{here}" aria-hidden="true">{mark}</span>')
            marks.append(f'<span class="course-spoken">task {position + 1} {words}, </span>')
        self.head.value = f"<b>Task {way.at + 1} of {many}</b> {''.join(marks)}"
        asks = way.open and isinstance(task, Read | Why)
        self.entry.layout.display = "flex" if way.open and isinstance(task, Read) else "none"
        self.options.layout.display = "block" if way.open and self.radio else "none"
        buttons = [(self.check, asks), (self.show, way.helps), (self.back, way.at > 0)]
        buttons.append((self.next, not way.open and way.at + 1 < many))
        self.buttons.children = tuple(button for button, visible in buttons if visible)
        kind = "course-right" if way.right else "course-miss"
        text = way.said
        if way.right and way.states.get(task.id) != DONE:
            text = f"Shown: {text}"
        elif way.right:
            text = f"Done: {text}"
        if not way.open and way.at + 1 == many and way.right:
            count = sum(1 for state in way.states.values() if state == DONE)
            text += f" That was the last task here: {count} of {many} done by yourself."
        self.said.value = f'<div class="{kind}" role="status">{escape(text)}</div>' if text else ""


def _button(description: str, tooltip: str) -> widgets.Button:
    return widgets.Button(description=description, tooltip=tooltip, layout={"width": "auto", "flex": "none"})
