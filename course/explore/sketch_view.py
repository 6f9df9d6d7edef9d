"""A sketch in a notebook: empty axes, a hand or arrow keys, a commit, and only then the true curve. See sketch.js."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from course.explore.component import script
from course.explore.sketch import Axis, Sketch
from course.explore.style import EXPLORER, dead
from course.explore.turn import in_turn

HERE = Path(__file__).parent
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Paper(widgets.Widget):
    """What is drawn on (apart from the widget that draws it, see `Drawing` in plot.py)."""

    axes: traitlets.Dict = traitlets.Dict().tag(sync=True)
    drawn: traitlets.Dict = traitlets.Dict().tag(sync=True)


class Pencil(anywidget.AnyWidget):
    """Draws on a Paper, and asks to commit."""

    _esm = script("drawn", "sketch")
    _css = HERE / "sketch.css"
    paper_id = traitlets.Unicode().tag(sync=True)


class SketchForm:
    """A sketch to be shown. End a cell with one.

    question: what is asked. drawings: the first and the last one before now, if any. commit: keeps a drawing. call: how
    to draw from Python. `commit` raises ValueError for a drawing that it does not take.

    What is said to a drawing is where it is off most. Why the curve is as it is, the lab shows, and says at its end.
    """

    def __init__(
        self, sketch: Sketch, question: str, drawings: Sequence[Sequence[float]],
        commit: Callable[[tuple[float, ...]], None], call: str,
    ) -> None:  # fmt: skip
        self.sketch, self.question, self.call = sketch, question, call
        self.drawings = [tuple(drawing) for drawing in drawings]
        self._commit, self._count = commit, 0

    def text(self) -> str:
        """The question and its axes, the same whatever was drawn; never the answer."""
        x, y = self.sketch.x, self.sketch.y
        given = [f"{self.sketch.words(value)} at {self.sketch.place(column)}"
                 for column, value in self.sketch.given.items()]  # fmt: skip
        columns = ", ".join(f"{column:g}" for column in self.sketch.columns)
        return "\n".join(
            [
                f"Draw: {self.question}",
                f"  across: {x.label}; up: {y.label}, {y.low:g} to {y.high:g}{', logarithmic' if y.log else ''}.",
                *([f"  Given: {', '.join(given)}."] if given else []),
                f"  Without the mouse: {self.call} with one value each for {columns}.",
            ]
        )

    __repr__ = text

    def commit(self, raw: Any) -> str:
        """Keep a drawing, and return what is said to it. Raises ValueError for what is none."""
        drawn = self.sketch.cleaned(raw)
        if drawn is None:
            raise ValueError(f"Draw one number in each of {len(self.sketch.columns)} columns")
        self._commit(drawn)
        self.drawings = [*self.drawings[:1], drawn]
        return self.sketch.judge(drawn).sentence

    @cached_property
    def _paper(self) -> Paper:
        sketch = self.sketch
        paper = Paper(
            axes={
                "question": self.question, "x": _axis(sketch.x), "y": _axis(sketch.y), "columns": list(sketch.columns),
                "given": [sketch.given.get(column) for column in sketch.columns],
                "named": [sketch.place(column) for column in sketch.columns],
            },
            drawn=self._drawn(),
        )  # fmt: skip
        paper.on_msg(self._asked)
        return paper

    def _drawn(self) -> dict[str, Any]:
        """What the browser gets: nothing of the truth before there is a drawing."""
        self._count += 1
        if not self.drawings:
            return {"count": self._count}
        judged = self.sketch.judge(self.drawings[-1])
        first = self.drawings[0] if self.drawings[0] != self.drawings[-1] else None
        return {
            "count": self._count, "mine": list(self.drawings[-1]), "first": list(first) if first else None,
            "curve": [list(point) for point in self.sketch.points], "true": list(judged.true), "worst": judged.worst,
            "close": judged.close, "said": judged.sentence,
            "values": [self.sketch.words(y) for y in judged.true],
        }  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        pencil = Pencil(paper_id=self._paper.model_id or "")
        self.root = widgets.VBox([widgets.HTML(EXPLORER + dead("draw nothing")), pencil])
        self.root.add_class("course-explorer")
        view = {"version_major": 2, "version_minor": 0, "model_id": self.root.model_id}
        return {"text/plain": self.text(), WIDGET_VIEW: view}

    @in_turn
    def _asked(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if not isinstance(content, dict) or "commit" not in content:
            return
        try:
            self.commit(content["commit"])
        except ValueError as error:
            self._count += 1
            self._paper.drawn = {**self._paper.drawn, "count": self._count, "fault": f"{error}."}
        else:
            self._paper.drawn = self._drawn()


def _axis(axis: Axis) -> dict[str, Any]:
    return {"label": axis.label, "low": axis.low, "high": axis.high, "ticks": list(axis.ticks), "log": axis.log}
