"""Questions with radio buttons: a prediction that is committed, a quiz that explains each answer at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets

from course.exercises.spec import LETTERS, Prediction, Question
from course.explore.keys import with_keys
from course.explore.style import FORM, dead

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def with_letters(options: Sequence[str]) -> list[str]:
    """Return the options with their letters: "a) ...", "b) ..."."""
    return [f"{letter}) {option}" for letter, option in zip(LETTERS, options, strict=False)]


class Form:
    """Widgets and their text form in one mime bundle; the widgets are built afresh for every display."""

    def __init__(self, text: str, build: Callable[[], widgets.Widget]) -> None:
        self._text = text
        self._build = build
        self.root: widgets.Widget | None = None

    def __repr__(self) -> str:
        return self._text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        self.root = self._build()
        view = {"version_major": 2, "version_minor": 0, "model_id": self.root.model_id}
        return {"text/plain": self._text, WIDGET_VIEW: view}


def prediction_form(prediction: Prediction, stored: int | None, commit: Callable[[int], str], text: str) -> Form:
    """Return the form of a prediction.

    prediction: the question.
    stored: position of the answer given before, if any.
    commit: stores a position and returns the sentence to show.
    text: the text form.
    """

    def build() -> widgets.Widget:
        radio = _radio(prediction.options, stored)
        button = widgets.Button(description="Commit", tooltip="Store this answer", disabled=stored is None)
        said = widgets.HTML(
            "" if stored is None else f"Stored: {LETTERS[stored]}. Commit again if you change your mind."
        )

        def chosen(_change: Any) -> None:
            button.disabled = radio.index is None

        def pressed(_button: Any) -> None:
            said.value = escape(commit(radio.index))

        radio.observe(chosen, names="index")
        button.on_click(pressed)
        head = widgets.HTML(f"{FORM}<strong>{escape(prediction.question)}</strong>{dead('store nothing')}")
        return _form([head, radio, widgets.HBox([button, said])])

    return Form(text, build)


def quiz_form(
    questions: Sequence[Question], stored: dict[str, int], answer: Callable[[Question, int], tuple[str, str]], text: str
) -> Form:
    """Return the form of a quiz.

    questions: the questions.
    stored: positions of the answers given before, by question id.
    answer: stores a position and returns the explanation and the score, as sentences.
    text: the text form.
    """

    def build() -> widgets.Widget:
        score = widgets.HTML()
        parts: list[widgets.Widget] = [widgets.HTML(FORM + dead("store nothing"))]
        for number, question in enumerate(questions, start=1):
            radio = _radio(question.options, stored.get(question.id))
            said = widgets.HTML()

            def chosen(_change: Any, question: Question = question, radio: Any = radio, said: Any = said) -> None:
                if radio.index is not None:
                    explanation, total = answer(question, radio.index)
                    said.value = f'<div role="status">{escape(explanation)}</div>'
                    score.value = f'<div role="status"><strong>{escape(total)}</strong></div>'

            radio.observe(chosen, names="index")
            parts += [widgets.HTML(f"<strong>{number}. {escape(question.question)}</strong>"), radio, said]
        return _form([*parts, score])

    return Form(text, build)


def _radio(options: Sequence[str], index: int | None) -> widgets.RadioButtons:
    return widgets.RadioButtons(options=with_letters(options), index=index, layout={"width": "auto"})


def _form(children: Sequence[widgets.Widget]) -> widgets.VBox:
    box = with_keys(widgets.VBox(list(children)))
    box.add_class("course-form")
    return box
