"""Lab: what a notebook talks to. It finds the lab's questions, shows them, judges answers and remembers."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from IPython import get_ipython
from IPython.display import display

from course.base.settings import quote
from course.exercises.cards import Card
from course.exercises.forms import Form, prediction_form, quiz_form, with_letters
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, judge
from course.exercises.progress import Progress
from course.exercises.spec import LETTERS, LabSpec, Prediction, Question, which
from course.exercises.standing import WORDS, answers, done_so_far, exercise_done, in_words


def available() -> tuple[str, ...]:
    """Return the numbers of the labs that have exercises, in order."""
    # By its name: the lessons stand above this room, and import it.
    lessons = importlib.import_module("course.lessons")
    names = (module.name for module in pkgutil.iter_modules(lessons.__path__))
    return tuple(sorted(name[3:] for name in names if re.fullmatch(r"lab\d\d", name)))


def load(number: str | int) -> LabSpec:
    """Return the questions of a lab.

    Raises ValueError: there is no such lab.
    """
    short = isinstance(number, str) or (isinstance(number, int) and 0 <= number < 100)
    wanted = str(number).strip().zfill(2) if short else ""
    if wanted not in available():
        raise ValueError(f"there is no lab {quote(number)}: choose from {', '.join(available()) or 'none yet'}")
    return importlib.import_module(f"course.lessons.lab{wanted}.exercises").LAB


class Lab:
    """One lab as a notebook sees it.

    Every method returns something to show, so it belongs at the end of a cell. None of them fails for what a learner
    does: a wrong id, an answer before its prediction, or a cell that runs twice give a sentence.

    number: the lab, such as "03", or a LabSpec. progress: where to remember; by default the learner's own file. show:
    whether to show the title and where the learner left off (only inside IPython).

    Raises ValueError: there is no such lab.
    """

    def __init__(self, number: str | int | LabSpec, progress: Progress | None = None, show: bool = True) -> None:
        self.spec = number if isinstance(number, LabSpec) else load(number)
        self.progress = progress or Progress()
        if show and get_ipython() is not None:
            display(self.where())

    def __repr__(self) -> str:
        return self.where().text()

    def where(self) -> Card:
        """Return a card with the title, the minutes, and where the learner left off."""
        finished = done_so_far(self.spec, self.progress)
        lines = []
        if any(finished.values()):
            lines += [f"So far: {in_words(self.spec, finished)}.", self._next(finished)]
        else:
            lines.append("Nothing is stored for this lab yet. Start below and run the cells in order.")
        return Card(
            f"Lab {self.spec.number}: {self.spec.title}. About {self.spec.minutes} minutes.", lines + self._notices()
        )

    def predict(self, id: str, choice: str | int | None = None) -> Card | Form:
        """Ask for a prediction, or store one from Python.

        id: the prediction. choice: the letter of an option, for those who work without the buttons.
        """
        prediction = _find(self.spec.predictions, id)
        if prediction is None:
            return self._unknown("prediction", id, self.spec.predictions)
        text = "\n".join([f"Prediction: {prediction.question}", *(f"  {o}" for o in with_letters(prediction.options))])
        if choice is not None:
            try:
                position = which(choice, prediction.options, prediction.id)
            except ValueError as error:
                return Card(f"Prediction: {prediction.question}", [*with_letters(prediction.options), f"{error}."])
            return Card(f"Prediction: {prediction.question}", [self._commit(prediction, position), *self._notices()])
        given = self._positions("predictions", prediction)
        if given:
            text += f"\n  You predicted {LETTERS[given[0]]}."
        return prediction_form(
            prediction, given[-1] if given else None, lambda position: self._commit(prediction, position), text
        )

    def recap(self, id: str) -> Card:
        """Return what was predicted beside what the lab showed."""
        prediction = _find(self.spec.predictions, id)
        if prediction is None:
            return self._unknown("prediction", id, self.spec.predictions)
        options, given = with_letters(prediction.options), self._positions("predictions", prediction)
        lines = ["You made no prediction here." if not given else f"You predicted: {options[given[0]]}"]
        if given and given[-1] != given[0]:
            lines.append(f"Later you changed to: {options[given[-1]]}")
        met = " as well" if given and given[0] == prediction.right else ""
        lines += [f"The lab showed{met}: {options[prediction.right]}", prediction.why]
        return Card(f"Prediction: {prediction.question}", lines)

    def check(self, id: str, answer: Any = None) -> Card:
        """Judge an answer to an exercise and return the verdict, with a hint if it is not right yet."""
        exercise = _find(self.spec.exercises, id)
        if exercise is None:
            return self._unknown("exercise", id, self.spec.exercises)
        verdict = judge(exercise, answer)
        if verdict.status != NOT_ATTEMPTED:

            def edit(entry: Any) -> dict[str, Any]:
                entry = entry if isinstance(entry, dict) else {}
                tries = entry.get("tries", 0)
                tries = tries if isinstance(tries, int) else 0
                if exercise_done(entry):
                    return entry
                return {**entry, "tries": tries + 1, "done": verdict.status == RIGHT, "at": _now()}

            self.progress.change(self.spec.number, "exercises", id, edit)
        number = self.spec.exercises.index(exercise) + 1
        heading = f"Exercise {number} of {len(self.spec.exercises)}, {exercise.title}: {verdict.status}."
        return Card(heading, [line for line in (verdict.hint, *self._notices()) if line], verdict.status)

    def quiz(self, **choices: str | int) -> Card | Form:
        """Show the quiz, or answer questions from Python: `lab.quiz(q1="b")`."""
        if not self.spec.quiz:
            return Card(f"Lab {self.spec.number} has no quiz.")
        if choices:
            return self._quiz_from_python(choices)
        text = []
        for number, question in enumerate(self.spec.quiz, start=1):
            text += [f"{number}. {question.question}", *(f"  {option}" for option in with_letters(question.options))]
        given = {q.id: self._positions("quiz", q) for q in self.spec.quiz}
        return quiz_form(
            self.spec.quiz, {name: all_[-1] for name, all_ in given.items() if all_}, self._answer, "\n".join(text)
        )

    def _quiz_from_python(self, choices: dict[str, str | int]) -> Card:
        lines = []
        for name, choice in choices.items():
            question = _find(self.spec.quiz, name)
            if question is None:
                return self._unknown("question", name, self.spec.quiz)
            try:
                position = which(choice, question.options, name)
            except ValueError as error:
                lines.append(f"{error}.")
                continue
            explanation, _ = self._answer(question, position)
            lines.append(f"{name}: {explanation}")
        return Card(f"Quiz: {self._score()}", lines + self._notices())

    def _answer(self, question: Question, position: int) -> tuple[str, str]:
        self._store("quiz", question, position)
        word = "Right." if position == question.right else "Not quite."
        return f"{word} {question.explanations[position]}", self._score()

    def _score(self) -> str:
        last = [(q, self._positions("quiz", q)) for q in self.spec.quiz]
        right = sum(1 for question, given in last if given and given[-1] == question.right)
        return f"{right} of {len(self.spec.quiz)} right."

    def _commit(self, prediction: Prediction, position: int) -> str:
        before = self._positions("predictions", prediction)
        self._store("predictions", prediction, position)
        letter = LETTERS[position]
        if not before or before[0] == position:
            return f"Stored: {letter}. The lab comes back to it at the end."
        return f"Stored: {letter}. Your first prediction, {LETTERS[before[0]]}, is kept as well."

    def _store(self, part: str, item: Prediction | Question, position: int) -> None:
        """Add an answer unless it repeats the last one. The text is stored: letters may move between versions."""
        text = item.options[position]

        def edit(entry: Any) -> list[dict[str, str]]:
            given = answers(entry)
            return given if given and given[-1]["answer"] == text else [*given, {"answer": text, "at": _now()}]

        self.progress.change(self.spec.number, part, item.id, edit)

    def _positions(self, part: str, item: Prediction | Question) -> list[int]:
        """Return the stored answers as positions; those that are no option any more are left out."""
        given = answers(self.progress.lab(self.spec.number)[part].get(item.id))
        return [item.options.index(a["answer"]) for a in given if a["answer"] in item.options]

    def _next(self, finished: dict[str, list[str]]) -> str:
        for part, ids in finished.items():
            for item in getattr(self.spec, part, ()):
                if item.id not in ids:
                    kind = WORDS[part].removesuffix("s")
                    title = getattr(item, "title", "") or item.question
                    return f"Next: {kind} {item.id} ({title.rstrip('.')})."
        return "Everything in this lab is done."

    def _unknown(self, kind: str, id: Any, items: Sequence[Any]) -> Card:
        known = ", ".join(item.id for item in items) or "none"
        return Card(f"There is no {kind} {quote(id)} in lab {self.spec.number}.", [f"Its {kind}s are: {known}."])

    def _notices(self) -> list[str]:
        """Return what there is to say about the progress file, once."""
        said, self.progress.notices[:] = list(self.progress.notices), []
        return said


def _find(items: Sequence[Any], id: Any) -> Any:
    return next((item for item in items if isinstance(id, str) and item.id == id), None)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
