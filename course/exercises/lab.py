"""Lab: what a notebook talks to. It finds the lab's questions, shows them, judges answers and remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from IPython import get_ipython
from IPython.display import display

from course.base.answers import wanted as answers_wanted
from course.base.settings import quote
from course.exercises import cells, drawing, minutes, solutions
from course.exercises.cards import Card
from course.exercises.curve import Drawing
from course.exercises.forms import Feedback, Form, prediction_form, quiz_form, ticket_form, with_letters
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.exercises.lesson import load
from course.exercises.progress import Progress, own
from course.exercises.spec import LETTERS, LabSpec, Prediction, Question, which
from course.exercises.standing import WORDS, answers, done_so_far, in_words
from course.explore.sketch_view import SketchForm


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
        self.progress = progress or own()
        self._cells = cells.watched(get_ipython())
        if show and get_ipython() is not None:
            display(self.where())

    def __repr__(self) -> str:
        return self.where().text()

    def where(self) -> Card:
        """Return a card with the title, the minutes, the objectives, and where the learner left off."""
        finished = self._finished()
        lines = []
        if any(finished.values()):
            lines += [f"So far: {in_words(self.spec, finished)}.", self._next(finished)]
        else:
            lines.append("Nothing is stored for this lab yet. Start below and run the cells in order.")
        spec = self.spec
        about = spec.minutes or minutes.stored(spec.number)
        heading = f"Lab {spec.number}: {spec.title}." + (f" About {about} minutes." if about else "")
        before = [f"Before you start: {spec.needs}"] if spec.needs else []
        if spec.objectives:
            before += ["After this lab you can", *(f"- {objective.text}" for objective in spec.objectives)]
        kept = Card(heading, [*before, "Run this cell: it says where you left off."]).text()
        return Card(heading, before + lines + self._notices(), kept=kept)

    def predict(self, id: str, choice: str | int | Sequence[float] | None = None) -> Card | Form | SketchForm:
        """Ask for a prediction, or store one from Python.

        id: the prediction. choice: the letter of an option, or the values of a curve that is to be drawn, for those who
        work without buttons and mouse.
        """
        prediction = _find(self.spec.predictions, id)
        if prediction is None:
            return self._unknown("prediction", id, self.spec.predictions)
        if isinstance(prediction, Drawing):
            if choice is None:
                return drawing.ask(prediction, self.progress, self.spec.number)
            return drawing.from_python(prediction, self.progress, self.spec.number, choice)
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
        """Return what was predicted beside what the lab showed; without a prediction the way to make one."""
        prediction = _find(self.spec.predictions, id)
        if prediction is None:
            return self._unknown("prediction", id, self.spec.predictions)
        if isinstance(prediction, Drawing):
            return drawing.recap(prediction, self.progress, self.spec.number)
        options, given = with_letters(prediction.options), self._positions("predictions", prediction)
        head = f"Prediction: {prediction.question}"
        lines = ["You made no prediction here." if not given else f"You predicted: {options[given[0]]}"]
        if not given and not answers_wanted():
            return Card(head, ["No prediction yet: make one above."])
        if given and given[-1] != given[0]:
            lines.append(f"Later you changed to: {options[given[-1]]}")
        kept = Card(head, lines).text()
        met = " as well" if given and given[0] == prediction.right else ""
        said = [prediction.answers[position] for position in dict.fromkeys(given)]
        lines = [*lines, f"The lab showed{met}: {options[prediction.right]}", *filter(None, said), prediction.why]
        return Card(head, lines, kept=kept)

    def check(self, id: str, answer: Any = None) -> Card:
        """Judge an answer to an exercise and return the verdict, with a hint if it is not right yet.

        From the third wrong answer on a second, plainer hint comes with it, and `solution` opens. Once the solution has
        been shown, the answer is to the exercise's twin. Nothing is graded if the cell with the answer raised.
        """
        exercise = _find(self.spec.exercises, id)
        if exercise is None:
            return self._unknown("exercise", id, self.spec.exercises)
        head = f"Exercise {self.spec.exercises.index(exercise) + 1} of {len(self.spec.exercises)}, {exercise.title}"
        failed = self._cells.failure_of(id)
        if failed is not None:
            return Card(f"{head}: not graded.", solutions.not_graded(*failed), WRONG)
        before = solutions.entry(self.progress, self.spec.number, id)
        instead = exercise.twin if before.shown and not before.done else None
        verdict = judge(instead or exercise, answer)
        if before.shown and before.done and exercise.twin and verdict.status == WRONG:
            # The cell may hold what solved the twin, and the lab was opened again.
            again_right = judge(exercise.twin, answer)
            if again_right.status == RIGHT:
                instead, verdict = exercise.twin, again_right
        if verdict.status == NOT_ATTEMPTED:
            again = [f"In its place: {instead.question}"] if instead else []
            return Card(f"{head}: {verdict.status}.", again + self._notices(), verdict.status)
        right, twin = verdict.status == RIGHT, instead is not None
        after = solutions.keep(self.progress, self.spec.number, id, right, twin, verdict.kind)
        lines = solutions.remarks(exercise, instead, verdict, after)
        other = ", with other numbers" if instead else ""
        return Card(f"{head}{other}: {verdict.status}.", lines + self._notices(), verdict.status)

    def solution(self, id: str) -> Card:
        """Show the solution of an exercise after three wrong answers; its twin must then be solved for it to count."""
        exercise = _find(self.spec.exercises, id)
        if exercise is None:
            return self._unknown("exercise", id, self.spec.exercises)
        heading, lines = solutions.show(exercise, self.progress, self.spec.number)
        return Card(heading, lines, preformatted=True, kept=heading)

    def earlier(self, **choices: str | int) -> Card | Form:
        """Ask the questions from earlier labs, or answer them from Python: `lab.earlier(batch="b")`."""
        return self._questions("questions from earlier labs", self.spec.earlier, choices)

    def quiz(self, **choices: str | int) -> Card | Form:
        """Show the quiz, or answer questions from Python: `lab.quiz(q1="b")`."""
        return self._questions("quiz", self.spec.quiz, choices, then=lambda: self._next(self._finished()))

    def ticket(self, **choices: str | int) -> Card | Form:
        """Show the ticket of "Break it", one question after the other, or answer from Python."""
        ticket = self.spec.ticket
        if ticket is None:
            return Card(f"Lab {self.spec.number} has no ticket.")
        if choices:
            return self._from_python(ticket.questions, choices)
        text = "\n".join([ticket.story, *_as_text(ticket.questions)])
        return ticket_form(ticket, self._stored(ticket.questions), self._answer, text)

    def _questions(
        self,
        kind: str,
        questions: Sequence[Question],
        choices: dict[str, str | int],
        then: Callable[[], str] | None = None,
    ) -> Card | Form:
        if not questions:
            return Card(f"Lab {self.spec.number} has no {kind}.")
        if choices:
            return self._from_python(questions, choices)
        return quiz_form(questions, self._stored(questions), self._answer, "\n".join(_as_text(questions)), then)

    def _stored(self, questions: Sequence[Question]) -> dict[str, Feedback]:
        """Return what the last answer to each question was, and what was said to it."""
        given = {question.id: (question, self._positions("quiz", question)) for question in questions}
        return {name: self._feedback(question, all_[-1]) for name, (question, all_) in given.items() if all_}

    def _from_python(self, questions: Sequence[Question], choices: dict[str, str | int]) -> Card:
        lines = []
        for name, choice in choices.items():
            question = _find(questions, name)
            if question is None:
                return self._unknown("question", name, questions)
            try:
                position = which(choice, question.options, name)
            except ValueError as error:
                lines.append(f"{error}.")
                continue
            lines.append(f"{name}: {self._answer(question, position).sentence}")
        return Card(f"Quiz: {self._score(questions)}", lines + self._notices(), kept="Your answers are stored.")

    def _answer(self, question: Question, position: int) -> Feedback:
        self._store("quiz", question, position)
        return self._feedback(question, position)

    def _feedback(self, question: Question, position: int) -> Feedback:
        right = position == question.right
        sentence = f"{'Right.' if right else 'Not quite.'} {question.explanations[position]}"
        group = next(g for g in self._groups() if question in g)
        return Feedback(position, right, sentence, self._score(group))

    def _groups(self) -> tuple[Sequence[Question], ...]:
        return self.spec.earlier, self.spec.ticket.questions if self.spec.ticket else (), self.spec.quiz

    def _score(self, questions: Sequence[Question]) -> str:
        last = [(q, self._positions("quiz", q)) for q in questions]
        right = sum(1 for question, given in last if given and given[-1] == question.right)
        answered = sum(1 for _, given in last if given)
        return f"{right} of {answered} right{'.' if answered == len(questions) else ' so far.'}"

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

    def _finished(self) -> dict[str, list[str]]:
        return done_so_far(self.spec, self.progress)

    def _next(self, finished: dict[str, list[str]]) -> str:
        seen = solutions.shown(self.progress, self.spec)
        for part, ids in finished.items():
            for item in getattr(self.spec, part, ()):
                if item.id not in ids and not (part == "exercises" and item.id in seen and item.twin is None):
                    kind = WORDS[part].removesuffix("s")
                    title = getattr(item, "title", "") or getattr(item, "question", "") or item.text
                    return f"Next: {kind} {item.id} ({title.rstrip('.')})."
        asked = self.spec.ticket.questions if self.spec.ticket else ()
        if any(question.right not in self._positions("quiz", question) for question in asked):
            return 'Next: the ticket of "Break it".'
        return "Everything in this lab is done." if not seen else "Everything in this lab is done or has been shown."

    def _unknown(self, kind: str, id: Any, items: Sequence[Any]) -> Card:
        known = ", ".join(item.id for item in items) or "none"
        return Card(f"There is no {kind} {quote(id)} in lab {self.spec.number}.", [f"Its {kind}s are: {known}."])

    def _notices(self) -> list[str]:
        """Return what there is to say about the progress file, once."""
        said, self.progress.notices[:] = list(self.progress.notices), []
        return said


def _as_text(questions: Sequence[Question]) -> list[str]:
    lines: list[str] = []
    for number, question in enumerate(questions, start=1):
        lines += [f"{number}. {question.question}", *(f"  {option}" for option in with_letters(question.options))]
    return lines


def _find(items: Sequence[Any], id: Any) -> Any:
    return next((item for item in items if isinstance(id, str) and item.id == id), None)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
