"""What a cell shows: a card with a heading and sentences, as text for everyone and as HTML if there is a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import ipywidgets as widgets

from course.base import answers
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG
from course.figures.theme import COLOURS, ink

# The words carry the meaning; the colours repeat it, and blue, green and orange stay apart for colour-blind readers.
EDGES = {RIGHT: ink("continuous"), WRONG: ink("wasted"), NOT_ATTEMPTED: COLOURS["waiting"], "": ink("decode")}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CARD = "border-left:5px solid {edge};padding:4px 12px;margin:2px 0;font-size:15px;line-height:1.5;max-width:860px"


@dataclass(frozen=True)
class Card:
    """A heading and lines of text.

    heading: the first line. lines: what follows. status: of an exercise: "not attempted yet", "right" or "not right
    yet"; "" for everything else. preformatted: whether blanks and line ends in the lines matter, as in code. kept:
    what a saved notebook keeps of a card that gives something away, which is then shown by a widget; None: all of it.
    """

    heading: str
    lines: Sequence[str] = field(default_factory=tuple)
    status: str = ""
    preformatted: bool = False
    kept: str | None = None

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return the card as plain text."""
        return "\n".join([self.heading, *(f"  {part}".rstrip() for line in self.lines for part in line.split("\n"))])

    def html(self) -> str:
        """Return the card as HTML."""
        style = CARD.format(edge=EDGES[self.status])
        code = [' style="white-space:pre-wrap;font-family:monospace"' if "\n" in line else "" for line in self.lines]
        shape = code if self.preformatted else [""] * len(self.lines)
        body = "".join(f"<div{how}>{escape(line)}</div>" for how, line in zip(shape, self.lines, strict=True))
        return f'<div style="{style}" role="status"><strong>{escape(self.heading)}</strong>{body}</div>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        if self.kept is None or answers.wanted():
            return {"text/plain": self.text(), "text/html": self.html()}
        view = {"version_major": 2, "version_minor": 0, "model_id": widgets.HTML(self.html()).model_id}
        return {"text/plain": self.kept, WIDGET_VIEW: view}
