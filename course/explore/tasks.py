"""Tasks of an explorer: find a setting, read a value, say why. Pure logic; the widgets are in `task_view`.

One task is open at a time. It is judged when the controls rest, answered in one sentence with numbers from the result,
and kept as done, or as shown if the learner had it shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from course.base import answers
from course.base.settings import quote
from course.explore import amounts
from course.explore.controls import Control
from course.explore.table import failure

Settings = Mapping[str, Any]
At = Callable[["Task"], tuple[Settings, Any]]
"""From a task to the settings where it is shown and the result there."""
DONE, SHOWN = "done", "shown"
STATES = (DONE, SHOWN)
PATIENCE = 2
"""Misses after which the explorer offers to show the setting."""
LETTERS = "abcdefghij"


def nothing(settings: Settings, result: Any) -> dict[str, Any]:
    """No facts: for an answer without numbers."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Task:
    """What all kinds have in common; use Find, Read or Why.

    id: names the task in the progress; unique in its lab.
    text: what to do, in one or two sentences.
    show: the settings that "Show me" moves to, on top of the defaults of the other controls; a function where they
        have to be searched for.
    facts: from settings and result to the values that `answer` (and a miss) may name: texts, or numbers for a format.
    answer: one sentence with those facts in braces, such as "p99 is {p99}, {ratio:.0f} times the mean".
    claim: what the answer says beyond its numbers, such as "larger than": the tests check it wherever the task is
        reached.
    """

    id: str
    text: str
    show: Settings | Callable[[], Settings]
    answer: str
    facts: Callable[[Settings, Any], Mapping[str, Any]] = nothing
    claim: Callable[[Settings, Any], bool] | None = None

    @property
    def settings(self) -> Settings:
        """The settings that "Show me" moves to."""
        return self.show() if callable(self.show) else self.show

    def said(self, settings: Settings, result: Any) -> str:
        """Return the answer with the numbers of this result."""
        return self.filled(self.answer, settings, result)

    def filled(self, text: str, settings: Settings, result: Any) -> str:
        """Return a text with the facts of this result in its braces.

        Raises ValueError for a brace that `facts` does not give.
        """
        facts = self.facts(settings, result)
        try:
            return amounts.singular(text.format(**facts))
        except KeyError as error:
            raise ValueError(
                f"task {quote(self.id)}: its facts have no {quote(error.args[0])}, which {quote(text)} names; there are"
                f" {', '.join(facts) or 'none'}"
            ) from None


@dataclass(frozen=True, kw_only=True)
class Find(Task):
    """Move the controls until something holds.

    reached: whether it holds at these settings. miss: said at rest if it does not, with the facts in braces. stay:
    where other controls have to stand; where one does not, that is said, as `miss` compares with a run at these.
    """

    reached: Callable[[Settings, Any], bool]
    miss: str = ""
    stay: Settings = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Read(Task):
    """Read a value and type it in.

    value: the value at these settings. unit: shown behind the field. rtol: relative tolerance; 5% suits a figure or a
    rounded table. where: whether the controls are where the value is to be read; None: anywhere. slips: pairs (factor,
    hint) for a typed value that is off by that factor, such as 1,000 for milliseconds.
    """

    value: Callable[[Settings, Any], float]
    unit: str = ""
    rtol: float = 0.05
    where: Callable[[Settings, Any], bool] | None = None
    slips: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, kw_only=True)
class Why(Task):
    """Say why: one of several options. The numbers of its answer are those at `show`.

    options: pairs (option, hint); the hint is shown when it is chosen wrongly, and may be "" for the right one. right:
    the letter of the right one.

    Raises ValueError: fewer than two options, two alike, a wrong one without a hint, or a letter that names none.
    """

    options: Sequence[tuple[str, str]]
    right: str

    def __post_init__(self) -> None:
        texts = [text for text, _ in self.options]
        if len(set(texts)) < max(2, len(texts)):
            raise ValueError(f"task {self.id!r} needs two or more different options, it has {texts!r}")
        if self.right not in list(LETTERS[: len(texts)]):
            raise ValueError(
                f"task {self.id!r}: {self.right!r} is not an option: choose one of {LETTERS[: len(texts)]}"
            )
        for position, (text, hint) in enumerate(self.options):
            if position != self.position and not hint:
                raise ValueError(f"task {self.id!r}: the option {text!r} is wrong and has no hint: write one")

    @property
    def position(self) -> int:
        """Where the right option stands, from 0."""
        return LETTERS.index(self.right)


def check_tasks(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return the tasks as a tuple.

    Raises ValueError: two share an id, or one is of no known kind.
    """
    tasks = tuple(tasks)
    for task in tasks:
        if not isinstance(task, Find | Read | Why):
            raise ValueError(f"{task!r} is not a task: give a list of Find, Read and Why")
    ids = [task.id for task in tasks]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ValueError(f"two tasks are called {twice[0]!r}: give each its own id")
    return tasks


class Record(Protocol):
    """Where done and shown tasks are kept, and how an explorer was left.

    `course.exercises.TaskRecord` keeps both in a learner's progress.
    """

    def states(self) -> Mapping[str, str]:
        """Return "done" or "shown" by the id of a task; others are left out."""

    def keep(self, id: str, state: str) -> None:
        """Keep the state of a task; one that was done stays done."""

    def left(self) -> Mapping[str, Any]:
        """Return what `leave` kept, {} if there is nothing; it may have been written by another version."""

    def leave(self, entry: Mapping[str, Any]) -> None:
        """Keep JSON values by name, over what was there under the same names."""


class Memory:
    """A record that lasts as long as the explorer, whose displays all begin at its defaults."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}

    def states(self) -> Mapping[str, str]:
        """See Record."""
        return dict(self._states)

    def keep(self, id: str, state: str) -> None:
        """See Record."""
        if self._states.get(id) != DONE:
            self._states[id] = state

    def left(self) -> Mapping[str, Any]:
        """See Record."""
        return {}

    def leave(self, entry: Mapping[str, Any]) -> None:
        """See Record."""


@dataclass
class Way:
    """How far a learner has come with the tasks of one explorer.

    tasks: in their order. record: where done and shown ones are kept. where: from a task to settings and result where
    it is shown. controls: of the explorer. at: position of the task looked at; it is open if
    it is neither done nor shown. misses: of that task. said: the sentence that stands below it, and `right` whether
    that is its answer.
    """

    tasks: tuple[Task, ...]
    record: Record
    where: At
    controls: Sequence[Control] = ()
    at: int = 0
    misses: int = 0
    said: str = ""
    right: bool = False
    states: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stored = self.record.states()
        self.states = {task.id: stored[task.id] for task in self.tasks if stored.get(task.id) in STATES}
        undone = [position for position, task in enumerate(self.tasks) if task.id not in self.states]
        self.at = undone[0] if undone else len(self.tasks) - 1
        self._again()

    @property
    def task(self) -> Task:
        """The task looked at."""
        return self.tasks[self.at]

    @property
    def open(self) -> bool:
        """Whether the task looked at is still to be solved."""
        return self.task.id not in self.states

    @property
    def helps(self) -> bool:
        """Whether "Show me" is offered."""
        return self.open and self.misses >= PATIENCE

    def go(self, step: int) -> None:
        """Look at the next task (1) or the one before (-1); an open one is never passed."""
        place = self.at + step
        if 0 <= place < len(self.tasks) and (step < 0 or not self.open):
            self.at, self.misses, self.said, self.right = place, 0, "", False
            self._again()

    def _again(self) -> None:
        """Say the answer of a task that was done or shown before, with the numbers where it is shown."""
        if self.open:
            return
        try:
            self.said, self.right = self.task.said(*self.where(self.task)), True
        except Exception as error:  # it stays done, and the explorer can be shown
            self.said, self.right = failure(error), False

    def rested(self, settings: Settings, result: Any) -> bool:
        """Judge at rest after a move; only a task that asks for a setting is. Returns whether it is done now."""
        task = self.task
        if not self.open or not isinstance(task, Find):
            return False
        if task.reached(settings, result):
            self._solve(DONE, settings, result)
            return True
        elsewhere = [
            f"{control.label} back to {control.text(task.stay[control.name])}"
            for control in self.controls
            if control.name in task.stay and settings[control.name] != task.stay[control.name]
        ]
        if elsewhere:
            self._miss(f"Something else was moved: set {' and '.join(elsewhere)}, or press Reset.")
        else:
            self._miss(task.filled(task.miss, settings, result) or "Not here yet.")
        return False

    def typed(self, text: str, settings: Settings, result: Any) -> None:
        """Judge a typed value."""
        task = self.task
        if not self.open or not isinstance(task, Read):
            return
        number = amounts.parse_typed(text, task.unit)
        if number is None:
            self.said = (
                f"{quote(text.strip())} is not a number: type one such as 12.5." if text.strip() else "Type a number."
            )
        elif task.where is not None and not task.where(settings, result):
            self.said = (
                "The task asks for another setting: move the controls there first. Reset goes back to the start."
            )
        elif not math.isfinite(right := task.value(settings, result)):
            self.said = "There is no such number at this setting: move the controls."
        elif _near(number, right, task.rtol):
            self._solve(DONE, settings, result)
        else:
            slips = (hint for factor, hint in task.slips if _near(number, right * factor, task.rtol))
            self._miss(next(slips, f"{_short(text)} is not the value asked for."))

    def chosen(self, position: int) -> None:
        """Judge a chosen option."""
        task = self.task
        if not self.open or not isinstance(task, Why):
            return
        if position == task.position:
            self._solve(DONE, *self.where(task))
        else:
            self._miss(task.options[position][1])

    def shown(self, settings: Settings, result: Any) -> None:
        """Close the task as shown: the controls stand at its `show` settings now."""
        if self.open:
            self._solve(SHOWN, settings, result)

    def _miss(self, sentence: str) -> None:
        self.misses += 1
        self.said, self.right = sentence, False

    def _solve(self, state: str, settings: Settings, result: Any) -> None:
        self.said, self.right = self.task.said(settings, result), True
        self.states[self.task.id] = state
        self.record.keep(self.task.id, state)


def _near(number: float, right: float, rtol: float) -> bool:
    return abs(number - right) <= rtol * abs(right) + 1e-12


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 40 else words[:37] + "..."


def in_words(tasks: Sequence[Task], at: At) -> list[str]:
    """Return the tasks as lines of text, with their answers where those are wanted (`course.base.answers`).

    at: settings and result where a task is shown.
    """
    lines, with_answers = [], answers.wanted()
    for number, task in enumerate(tasks, start=1):
        lines.append(f"Task {number}. {task.text}")
        if isinstance(task, Why):
            lines += [f"  {letter}) {text}" for letter, (text, _) in zip(LETTERS, task.options, strict=False)]
        if with_answers:
            right = f"{task.right}) " if isinstance(task, Why) else ""
            lines.append(f"  Answer: {right}{task.said(*at(task))}")
    return lines
