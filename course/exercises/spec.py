"""What a lab asks, as plain data: predictions, exercises with their mistakes, quiz questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.base.settings import quote
from course.explore.tasks import Task

LETTERS = "abcdefghij"


@dataclass(frozen=True)
class Mistake:
    """A plausible wrong answer, and the hint for whoever gives it.

    answer: the wrong value, or the wrong function or object, of the same kind as the solution. hint: sentences that
    point at the wrong step; they never contain the answer.
    """

    answer: Any
    hint: str

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
    hint: one more sentence for wrong answers that fit no mistake.

    Raises ValueError: both or neither of `probes` and `evaluate` where the solution needs one, or a bad tolerance.
    """

    id: str
    title: str
    solution: Any
    mistakes: tuple[Mistake, ...] = ()
    probes: tuple[tuple[Any, ...], ...] | None = None
    evaluate: Callable[[Any], Any] | None = None
    rtol: float = 1e-2
    hint: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mistakes", tuple(self.mistakes))
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


@dataclass(frozen=True)
class Prediction:
    """A question to be answered before the lab shows the answer.

    id: the name used in `lab.predict(id)` and `lab.recap(id)`.
    question: the question.
    options: two to ten answers; they get the letters a, b, c ...
    right: the right option, as its letter, its position from 0, or its text.
    why: one or two sentences for the recap.
    """

    id: str
    question: str
    options: tuple[str, ...]
    right: str | int
    why: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _options(self.options, self.id))
        object.__setattr__(self, "right", which(self.right, self.options, self.id))


@dataclass(frozen=True)
class Question:
    """A quiz question.

    id: a short name, used to store the answer. choices: pairs (option, explanation); the explanation is for whoever
    chooses that option. right: the right option, as its letter, its position from 0, or its text.
    """

    id: str
    question: str
    choices: tuple[tuple[str, str], ...]
    right: str | int

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
        """What whoever chooses an option is told, in the order of the options."""
        return tuple(explanation for _, explanation in self.choices)


@dataclass(frozen=True)
class LabSpec:
    """Everything one lab asks.

    number: two digits, as in the notebook's name.
    title: the lab's title.
    minutes: how long it takes.
    predictions: in the order in which the notebook asks them.
    tasks: of its explorers, in the order of the notebook.
    exercises: in the order of the notebook.
    quiz: in the order shown.

    Raises ValueError: two parts share an id, or a mistake cannot be told from the solution or from another mistake.
    """

    number: str
    title: str
    minutes: int
    predictions: tuple[Prediction, ...] = ()
    tasks: tuple[Task, ...] = ()
    exercises: tuple[Exercise, ...] = ()
    quiz: tuple[Question, ...] = ()

    def __post_init__(self) -> None:
        from course.exercises.judge import overlaps

        for part in ("predictions", "tasks", "exercises", "quiz"):
            object.__setattr__(self, part, tuple(getattr(self, part)))
            ids = [item.id for item in getattr(self, part)]
            twice = sorted({name for name in ids if ids.count(name) > 1})
            if twice:
                raise ValueError(f"lab {self.number}: two {part} are called {twice[0]!r}: give each its own id")
        for exercise in self.exercises:
            # What `evaluate` does may take a while, so that kind is compared by the tests and not at import.
            problem = None if exercise.evaluate else overlaps(exercise)
            if problem:
                raise ValueError(f"lab {self.number}, exercise {exercise.id!r}: {problem}")


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
    raise ValueError(f"{name}: {quote(choice)} is no option: choose one of {', '.join(LETTERS[: len(options)])}")


def _options(options: Any, name: str) -> tuple[str, ...]:
    texts = tuple(str(option) for option in options)
    if isinstance(options, str) or not 2 <= len(texts) <= len(LETTERS) or len(set(texts)) < len(texts):
        raise ValueError(f"{name} needs 2 to {len(LETTERS)} different options, it has {texts!r}")
    return texts
