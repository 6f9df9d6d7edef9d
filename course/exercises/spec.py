"""What a lab asks, as plain data: predictions, exercises with their mistakes, quiz questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from course.base.settings import quote
from course.exercises.curve import Drawing
from course.exercises.slips import Slip
from course.explore.tasks import Task

LETTERS = "abcdefghij"


@dataclass(frozen=True)
class Mistake:
    """A plausible wrong answer, and the hint for it.

    answer: the wrong value, or the wrong function or object, of the same kind as the solution. hint: sentences that
    point at the wrong step; they never contain the answer. name: under which a class counts it; the same in every
    version of the lab.
    """

    answer: Any
    hint: str
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.hint, str) or not self.hint.strip():
            raise ValueError(f"the mistake {self.answer!r} has no hint: write one that points at the wrong step")


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Three kinds: a value (`solution` is the right value), a function (`probes` lists argument tuples; the results are
    compared), or an object such as a policy (`evaluate(answer)` returns what is compared).

    id: the name used in `lab.check(id, answer)`.
    title: a few words for people.
    solution: the right value, function or object.
    mistakes: plausible wrong answers, each with its hint.
    probes: argument tuples for a function.
    evaluate: turns an answer into the value to compare, applied to the learner's, the solution and every mistake. For a
        mistake it may raise: then the error is what is compared.
    rtol: relative tolerance for numbers; 1% suits values worked out by hand.
    shown: the last digit of such a number in the text, such as 0.01 where a worked example ends with 0.15 dollars: what
        is rounded like that is right too. 0: the text shows none.
    hint: one more sentence for wrong answers that fit no mistake.
    plain: the second, plainer hint, added from the third wrong answer on: the steps in words, without the answer.
    slips: slips of units that only this exercise knows, such as `slips.per_token(256)`; those that every exercise
        knows (reciprocal, milliseconds, percent) need not be listed.
    worked: what `lab.solution(id)` shows for a solution; by default the source of a function, or the value.
    question: what is asked, for an exercise that has no cell of its own: a twin.
    twin: the same question with other numbers, an Exercise of the same kind with its `question`. Whoever was shown
        the solution solves it instead.

    Raises ValueError: both or neither of `probes` and `evaluate` if the solution needs one, a bad tolerance, or a
    twin without a question or with a twin of its own.
    """

    id: str
    title: str
    solution: Any
    mistakes: tuple[Mistake, ...] = ()
    probes: tuple[tuple[Any, ...], ...] | None = None
    evaluate: Callable[[Any], Any] | None = None
    rtol: float = 1e-2
    shown: float = 0.0
    hint: str = ""
    plain: str = ""
    slips: tuple[Slip, ...] = ()
    worked: str = ""
    question: str = ""
    twin: Exercise | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mistakes", tuple(self.mistakes))
        object.__setattr__(self, "slips", tuple(self.slips))
        if self.twin is not None and (not self.twin.question or self.twin.twin is not None):
            raise ValueError(f"exercise {self.id!r}: its twin needs a question of its own, and no twin")
        if self.probes is not None and self.evaluate is not None:
            raise ValueError(f"exercise {self.id!r} has probes and evaluate: give one of them")
        if self.probes is not None:
            probes = tuple(probe if isinstance(probe, tuple) else (probe,) for probe in self.probes)
            if not probes or not callable(self.solution):
                raise ValueError(f"exercise {self.id!r} has probes: it needs at least one, and a function as solution")
            object.__setattr__(self, "probes", probes)
        elif self.evaluate is None and callable(self.solution):
            raise ValueError(f"exercise {self.id!r} asks for a function: give probes (arguments to call it with)")
        if not 0 <= self.rtol < 1:
            raise ValueError(f"exercise {self.id!r} has rtol {self.rtol}: choose a tolerance from 0 to below 1")
        if not 0 <= self.shown < math.inf:
            raise ValueError(f"exercise {self.id!r} has shown {self.shown}: write the last digit of the text, as 0.01")


@dataclass(frozen=True)
class Prediction:
    """A question to be answered before the lab shows the answer.

    id: the name used in `lab.predict(id)` and `lab.recap(id)`.
    question: the question.
    options: two to ten answers; they get the letters a, b, c ... Each is a text, or a triple (text, belief, answer).
        The belief is the id of an entry in `docs/misconceptions.md`, "" for the right option; the answer is what the
        recap answers this option. After construction `options` holds the texts, `beliefs` and `answers`
        the rest, "" if there is none.
    right: the right option, as its letter, its position from 0, or its text.
    why: one or two sentences for the recap, whatever was chosen.

    Raises ValueError: no such right option, an option that is neither text nor triple, the right option with a belief,
    or a wrong one without, if others have theirs.
    """

    id: str
    question: str
    options: tuple[Any, ...]
    right: str | int
    why: str
    beliefs: tuple[str, ...] = field(init=False)
    answers: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        _options([str(option) for option in self.options] if not isinstance(self.options, str) else "", self.id)
        triples = [(option, "", "") if isinstance(option, str) else tuple(option) for option in self.options]
        if not all(len(t) == 3 and all(isinstance(part, str) for part in t) for t in triples):
            raise ValueError(f"prediction {self.id!r}: give each option as a text, or as (text, belief, answer)")
        object.__setattr__(self, "options", _options([text for text, _, _ in triples], self.id))
        object.__setattr__(self, "right", which(self.right, self.options, self.id))
        object.__setattr__(self, "beliefs", tuple(belief for _, belief, _ in triples))
        object.__setattr__(self, "answers", tuple(answer for _, _, answer in triples))
        if any(self.beliefs):
            wrong = [text for text, belief in zip(self.options, self.beliefs, strict=True) if not belief]
            if wrong != [self.options[self.right]]:  # type: ignore[index]  # `right` is a position by now
                raise ValueError(f"prediction {self.id!r}: every option but the right one needs a belief")


@dataclass(frozen=True)
class Question:
    """A quiz question.

    id: a short name, used to store the answer. choices: pairs (option, explanation); the explanation is for whoever
    chooses that option. right: the right option, as its letter, its position from 0, or its text. lab: the lab whose
    subject it is, such as "03", for a question that another lab asks again; "" for its own.
    """

    id: str
    question: str
    choices: tuple[tuple[str, str], ...]
    right: str | int
    lab: str = ""

    def __post_init__(self) -> None:
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 and pair[1] for pair in self.choices):
            raise ValueError(f"question {self.id!r}: give each option as a pair (answer, explanation)")
        texts = _options([option for option, _ in self.choices], self.id)
        explanations = [explanation for _, explanation in self.choices]
        object.__setattr__(self, "choices", tuple(zip(texts, explanations, strict=True)))
        object.__setattr__(self, "right", which(self.right, texts, self.id))

    @property
    def options(self) -> tuple[str, ...]:
        """The options, in the order shown; they get the letters a, b, c ..."""
        return tuple(option for option, _ in self.choices)

    @property
    def explanations(self) -> tuple[str, ...]:
        """The answer to each option, in their order."""
        return tuple(explanation for _, explanation in self.choices)


@dataclass(frozen=True)
class Objective:
    """What a learner can do after the lab, and where that shows.

    text: goes on after "After this lab you can", with a verb that can be watched: "compute ...", "choose ...".
    task: id of the task of an explorer. exercise: id of the exercise. retest: the question of a later lab that asks for
    it again, as "NN:id", such as "08:batch".
    """

    text: str
    task: str
    exercise: str
    retest: str

    def __post_init__(self) -> None:
        number, _, name = self.retest.partition(":")
        if not (len(number) == 2 and number.isdigit() and name):
            raise ValueError(
                f"objective {self.text!r}: retest is {self.retest!r}; write a lab and a question, '08:batch'"
            )


@dataclass(frozen=True)
class Ticket:
    """What "Break it" asks, backwards: what an operator gets, questions one after the other, and then the setting.

    story: the ticket, in its writer's words. questions: the cause, the next measurement, the repair; each is
    shown once the one before has been answered rightly, or wrongly twice. setting: shown after the last.
    """

    story: str
    questions: tuple[Question, ...]
    setting: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", tuple(self.questions))
        if not (self.story and self.questions and self.setting):
            raise ValueError("a ticket needs a story, questions and the setting that is shown at the end")


@dataclass(frozen=True)
class LabSpec:
    """Everything one lab asks.

    number: two digits, as in the notebook's name.
    title: the lab's title.
    minutes: how long it takes; None: as counted (`course.exercises.minutes`), which is so for every lab of the course.
    predictions: in the order in which the notebook asks them; one may be a Drawing (`drawing.py`).
    tasks: of its explorers, in the order of the notebook. by_explorer: the same by the explorer's name in the lesson.
    exercises: in the order of the notebook.
    quiz: in the order shown.
    objectives: what a learner can do afterwards, three at most.
    needs: what one needs before, in one sentence; "" for nothing.
    earlier: questions from earlier labs, each with its `lab`: one from the last, one from three or more back.
    ticket: what "Break it" asks.
    terms: those of the glossary that are new in this lab, eight at most.

    Raises ValueError: two parts share an id (quiz, earlier questions and ticket count as one part), or an earlier
    question names no lab. Whether every mistake can be told from the solution is asked by the tests
    (`judge.overlaps`): a lab that starts does not wait for it.
    """

    number: str
    title: str
    minutes: int | None = None
    predictions: tuple[Prediction | Drawing, ...] = ()
    tasks: tuple[Task, ...] = ()
    exercises: tuple[Exercise, ...] = ()
    quiz: tuple[Question, ...] = ()
    objectives: tuple[Objective, ...] = ()
    needs: str = ""
    earlier: tuple[Question, ...] = ()
    ticket: Ticket | None = None
    terms: tuple[str, ...] = ()
    by_explorer: Mapping[str, tuple[Task, ...]] = field(default_factory=dict)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Every question with explained options: earlier ones, the ticket's, the quiz."""
        return (*self.earlier, *(self.ticket.questions if self.ticket else ()), *self.quiz)

    def __post_init__(self) -> None:
        for part in ("predictions", "tasks", "exercises", "quiz", "objectives", "earlier", "terms"):
            object.__setattr__(self, part, tuple(getattr(self, part)))
        parts: dict[str, tuple[Any, ...]] = {
            "predictions": self.predictions,
            "tasks": self.tasks,
            "exercises": self.exercises,
            "quiz": self.questions,
        }
        for part, items in parts.items():
            ids = [item.id for item in items]
            twice = sorted({name for name in ids if ids.count(name) > 1})
            if twice:
                raise ValueError(f"lab {self.number}: two {part} are called {twice[0]!r}: give each its own id")
        for place, one in enumerate(self.predictions):
            before, after = [asked.id for asked in self.predictions[:place]], getattr(one, "after", "")
            if after and after not in before:
                raise ValueError(f"lab {self.number}: {one.id!r} is after {after!r}, which is no prediction before it")
        for question in self.earlier:
            if not question.lab or question.lab == self.number:
                raise ValueError(f"lab {self.number}, question {question.id!r}: say which earlier lab it is from")


def which(choice: Any, options: tuple[str, ...], name: str) -> int:
    """Return the position of an option that is named by letter, position or text.

    Raises ValueError: no such option.
    """
    if isinstance(choice, str):
        text = choice.strip()
        if text in options:
            return options.index(text)
        letter = text.rstrip(").").casefold()
        if len(letter) == 1 and letter in LETTERS[: len(options)]:
            return LETTERS.index(letter)
    elif isinstance(choice, int) and not isinstance(choice, bool) and 0 <= choice < len(options):
        return choice
    raise ValueError(f"{name}: {quote(choice)} is not an option: choose one of {', '.join(LETTERS[: len(options)])}")


def _options(options: Any, name: str) -> tuple[str, ...]:
    texts = tuple(str(option) for option in options)
    if isinstance(options, str) or not 2 <= len(texts) <= len(LETTERS) or len(set(texts)) < len(texts):
        raise ValueError(f"{name} needs 2 to {len(LETTERS)} different options, it has {texts!r}")
    return texts
