"""Questions with radio buttons: a prediction that is committed, a quiz that explains each answer at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import ipywidgets as widgets

from course.exercises.spec import LETTERS, Prediction, Question, Ticket
from course.explore.keys import with_keys
from course.explore.style import FORM, dead

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MARKS = {True: "✓", False: "✗"}


@dataclass(frozen=True)
class Feedback:
    """What an answer to a question gets.

    position: of the chosen option. right: whether it is the right one. sentence: the verdict and the explanation of
    this option. score: of the questions around it, as a sentence.
    """

    position: int
    right: bool
    sentence: str
    score: str


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
            "" if stored is None else _said(f"Stored: {LETTERS[stored]}. Commit again if you change your mind.")
        )

        def chosen(_change: Any) -> None:
            button.disabled = radio.index is None

        def pressed(_button: Any) -> None:
            said.value = _said(commit(radio.index))

        radio.observe(chosen, names="index")
        button.on_click(pressed)
        head = widgets.HTML(f"{FORM}<strong>{escape(prediction.question)}</strong>{dead('store nothing')}")
        return _form([head, radio, widgets.HBox([button, said])])

    return Form(text, build)


Answer = Callable[[Question, int], Feedback]


def quiz_form(
    questions: Sequence[Question],
    stored: Mapping[str, Feedback],
    answer: Answer,
    text: str,
    then: Callable[[], str] | None = None,
) -> Form:
    """Return the form of a quiz. The feedback stands below its own question, with a mark and a colour.

    questions: the questions.
    stored: what was said to the answers given before, by question id.
    answer: stores a position and returns what to say.
    text: the text form.
    then: says where to go on; it stands last, where "Run All Cells" ends.
    """

    def build() -> widgets.Widget:
        last = widgets.HTML(_said(then()) if then else "")

        def answered(_question: Question, feedback: Feedback) -> None:
            last.value = _said(feedback.score, "course-score") + (_said(then()) if then else "")

        asked = [
            _question(f"{number}. ", question, stored.get(question.id), answer, answered)
            for number, question in enumerate(questions, start=1)
        ]
        for question in questions:
            if question.id in stored:
                answered(question, stored[question.id])
        return _form([widgets.HTML(FORM + dead("store nothing")), *asked, last])

    return Form(text, build)


def ticket_form(ticket: Ticket, stored: Mapping[str, Feedback], answer: Answer, text: str) -> Form:
    """Return the form of a ticket: its questions one after the other, and at the end the setting.

    The next question opens when this one has been answered rightly, or wrongly twice. See `quiz_form`.
    """

    def build() -> widgets.Widget:
        setting = widgets.HTML()
        misses: dict[str, int] = {}
        passed: set[str] = set()

        def settle(question: Question, feedback: Feedback) -> None:
            misses[question.id] = misses.get(question.id, 0) + (not feedback.right)
            if feedback.right or misses[question.id] > 1:
                passed.add(question.id)
            open_ = True
            for one, box in zip(ticket.questions, boxes, strict=True):
                box.layout.display = "flex" if open_ else "none"
                open_ = open_ and one.id in passed
            setting.value = _said(f"What it was: {ticket.setting}", "course-score") if open_ else ""

        boxes = [
            _question(f"{number}. ", question, stored.get(question.id), answer, settle)
            for number, question in enumerate(ticket.questions, start=1)
        ]
        for box in boxes[1:]:
            box.layout.display = "none"
        for question in ticket.questions:
            if question.id in stored:
                settle(question, stored[question.id])
        head = widgets.HTML(f"{FORM}{dead('store nothing')}<div>{escape(ticket.story)}</div>")
        return _form([head, *boxes, setting])

    return Form(text, build)


def _question(
    number: str,
    question: Question,
    before: Feedback | None,
    answer: Answer,
    answered: Callable[[Question, Feedback], None],
) -> widgets.VBox:
    """One question in a box of its own: heading, options, and the feedback to the option that is marked."""
    radio = _radio(question.options, before.position if before else None)
    said = widgets.HTML(_verdict(before) if before else "")

    def chosen(_change: Any) -> None:
        if radio.index is not None:
            feedback = answer(question, radio.index)
            said.value = _verdict(feedback)
            answered(question, feedback)

    radio.observe(chosen, names="index")
    box = widgets.VBox([widgets.HTML(f"<strong>{number}{escape(question.question)}</strong>"), radio, said])
    box.add_class("course-question")
    return box


def _verdict(feedback: Feedback) -> str:
    kind = "course-right" if feedback.right else "course-wrong"
    mark = f'<span class="course-mark" aria-hidden="true">{MARKS[feedback.right]}</span> '
    return f'<div class="course-said {kind}" role="status">{mark}{escape(feedback.sentence)}</div>'


def _said(sentence: str, kind: str = "") -> str:
    """A sentence that goes when the kernel does: `course.explore.style` hides it in a dead form."""
    return f'<div class="{f"course-said {kind}".strip()}" role="status">{escape(sentence)}</div>'


def _radio(options: Sequence[str], index: int | None) -> widgets.RadioButtons:
    return widgets.RadioButtons(options=with_letters(options), index=index, layout={"width": "auto"})


def _form(children: Sequence[widgets.Widget]) -> widgets.VBox:
    box = with_keys(widgets.VBox(list(children)))
    box.add_class("course-form")
    return box
