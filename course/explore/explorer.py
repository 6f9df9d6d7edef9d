"""Explorer: controls + a pure simulation + a figure + a summary, shown as one object."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import plotly.graph_objects as go

from course.explore.controls import Control, check_controls
from course.explore.table import Rows, failure, rows_of, text_table, warnings_of
from course.explore.tasks import Memory, Record, Settings, Task, check_tasks, in_words
from course.explore.view import View

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Explorer:
    """Sliders that drive a simulation. End a cell with one to show it.

    Shown, it is one mime bundle: the live widgets, and as text/plain the table at the default settings. The text is
    what nbval compares and what a screen reader finds; it never depends on where the sliders stand. Each display
    builds widgets of its own, so a cell that runs twice leaves one set of callbacks.

    simulate: pure function of the settings, called with keyword arguments, one for each control.
    controls: Slider, Choice and Toggle objects.
    figure: from the result to a plotly figure (`course.figures.theme.new_figure` starts one).
    summary: from the result to rows (label, text), rounded and deterministic; rows may have several values, and a first
        row with an empty label heads the columns.
    title: one line above the controls.
    badge: where the numbers come from: "modelled", "recorded", "measured" or "theory", perhaps with a detail after a
        colon ("recorded: H100 SXM"); "" shows none.

    tasks: what the learner is to find, read and explain with it, in order (`course.explore.tasks`).
    record: where the tasks that are done or shown are kept, and where the controls were left, at which the next display
        begins; a lesson gives `course.exercises.TaskRecord`. By default tasks last as long as this object.
    beside: whether the table stands beside the figure; None: if it has at most two values a row.
    unused: controls that do nothing while another stands at one of these settings, and are greyed out then, such as
        {"block_size": ("how", ["reserved"])}.

    Warnings of a run are shown when the result, or a run inside a mapping or sequence, has `warnings`.

    Raises ValueError: two controls share a name, or two tasks an id.
    """

    pure = True
    """Whether the same settings always give the same, so that it may be computed before it is asked for."""

    def __init__(
        self,
        simulate: Callable[..., Any],
        controls: Sequence[Control],
        figure: Callable[[Any], go.Figure],
        summary: Callable[[Any], Iterable[Sequence[Any]]],
        title: str = "",
        badge: str = "modelled",
        tasks: Sequence[Task] = (),
        record: Record | None = None,
        beside: bool | None = None,
        unused: Mapping[str, tuple[str, Collection[Any]]] | None = None,
    ) -> None:
        self.simulate = simulate
        self.controls = check_controls(controls)
        self.figure = figure
        self.summary = summary
        self.title = title
        self.badge = badge
        self.tasks = check_tasks(tasks)
        self.record = record or Memory()
        self.beside = beside
        self.unused = unused or {}
        self.view: Any = None  # the latest display
        self._default: tuple[Any] | None = None

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings at the start."""
        return {control.name: control.default for control in self.controls}

    def does_nothing(self, name: str, settings: Mapping[str, Any]) -> bool:
        """Whether the control of this name changes nothing at these settings."""
        other, values = self.unused.get(name, ("", ()))
        return bool(other) and settings[other] in values

    def left(self) -> dict[str, Any]:
        """Return the settings at which the learner left it; the default where none is kept, or one that is no stop."""
        stored = self.record.left().get("settings")
        settings = self.defaults
        for control in self.controls:
            if isinstance(stored, dict) and control.name in stored:
                with suppress(ValueError):
                    value: Any = control.clean(stored[control.name])
                    settings[control.name] = control.at_stop(value)
        return settings

    def settings(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return checked settings for every control, the default if none is given.

        Raises ValueError: an unknown name, or a value that its control refuses.
        """
        names = [control.name for control in self.controls]
        for name in changes:
            if name not in names:
                raise ValueError(f"there is no control {name!r}: choose from {', '.join(names)}")
        return {c.name: c.clean(changes[c.name]) if c.name in changes else c.default for c in self.controls}

    def settings_of(self, task: Task) -> dict[str, Any]:
        """Return where the controls stand when a task is shown.

        Raises ValueError: the task shows what is no setting, or a value that its control cannot stand at.
        """
        settings = self.settings(task.settings)
        return {control.name: control.at_stop(settings[control.name]) for control in self.controls}

    def compute(self, **settings: Any) -> Any:
        """Run the simulation without any widget; settings left out are at their default.

        Raises ValueError: an unknown or refused setting, or what the simulation itself refuses.
        """
        return self.simulate(**self.settings(settings))

    def set(self, **settings: Any) -> Any:
        """Move the controls from Python: as a hand would, but the run has ended when this returns.

        Settings left out stay where they are. Drives the latest display, or one not shown yet.

        Returns the result of the run.

        Raises ValueError: an unknown or refused setting, or a value between two stops of a log slider.
        """
        cleaned = self.settings(settings)
        by_name = {control.name: control for control in self.controls}
        positions = {name: by_name[name].at_stop(cleaned[name]) for name in settings}
        if self.view is None:
            self.view = self.new_view()
        return self.view.set(positions)

    def new_view(self) -> Any:
        """Return the widgets of one display: `root`, and `set` to move them."""
        return View(self)

    def rows(self, result: Any) -> Rows:
        """Return the summary of a result as rows of texts."""
        return rows_of(self.summary(result))

    def drawn(self, result: Any) -> go.Figure:
        """Return the figure of a result; ValueError if `figure` returns something else."""
        figure = self.figure(result)
        if not isinstance(figure, go.Figure):
            raise ValueError(f"the function `figure` returned {type(figure).__name__}, not a plotly figure")
        return figure

    def default_result(self) -> Any:
        """Return the result at the default settings, computed once."""
        if self._default is None:
            self._default = (self.compute(),)
        return self._default[0]

    def shown(self, task: Task) -> tuple[Settings, Any]:
        """Return settings and result where a task is shown."""
        settings = self.settings_of(task)
        return settings, self.default_result() if settings == self.defaults else self.compute(**settings)

    def text(self) -> str:
        """Return what the explorer shows at its default settings, in words."""
        start = ", ".join(f"{control.label} {control.text(control.default)}" for control in self.controls)
        head = f"{self.title or 'Explorer'} [{self.badge}]" if self.badge else self.title or "Explorer"
        lines = [head, f"At the start: {start}"] if start else [head]
        try:
            result = self.default_result()
            lines.append(text_table(self.rows(result), indent="  "))
            lines += [f"Warning: {warning}" for warning in warnings_of(result)]
            lines += in_words(self.tasks, self.shown)
        except Exception as error:  # the widgets stay usable: another setting may work
            lines.append(failure(error))
        return "\n".join(line for line in lines if line)

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        self.view = self.new_view()
        view = {"version_major": 2, "version_minor": 0, "model_id": self.view.root.model_id}
        return {"text/plain": self.text(), WIDGET_VIEW: view}
