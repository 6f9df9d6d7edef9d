"""What happens after wrong answers: a plainer hint at the third, then the solution, then a twin with other numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from textwrap import dedent
from typing import Any

from course.exercises.compare import brief
from course.exercises.judge import RIGHT, Verdict
from course.exercises.progress import Progress
from course.exercises.spec import Exercise, LabSpec

TWIN = "twin: "
"""Before the kind of a wrong answer to the twin."""
PATIENCE = 3
"""Wrong answers after which the plainer hint comes and the solution opens."""
IS_SHOWN = "The solution was shown, so this exercise counts as shown. It has no second version."


@dataclass(frozen=True)
class Entry:
    """How far an exercise has come.

    tries: answers that were graded, the right one among them. done: solved by the learner, the twin if the solution
    had been shown. shown: whether the solution has been shown. wrong: how many wrong answers were of each kind.
    """

    tries: int = 0
    done: bool = False
    shown: bool = False
    wrong: Mapping[str, int] = field(default_factory=dict)


def entry(progress: Progress, number: str, id: str) -> Entry:
    """Return what is stored for an exercise; anything of another shape counts as nothing."""
    return read(progress.lab(number)["exercises"].get(id))


def keep(progress: Progress, number: str, id: str, right: bool, twin: bool = False, kind: str = "") -> Entry:
    """Store one more answer and return the new entry. What is done stays done, and its answers are not counted.

    right: the verdict. twin: whether it was about the twin; a right answer to what was shown makes nothing done.
    kind: of a wrong answer, as `Verdict.kind`; "" is not counted by kind.
    """

    def edit(stored: Any) -> dict[str, Any]:
        old, known = read(stored), stored if isinstance(stored, dict) else {}
        if old.done:
            return known
        new = {**known, "tries": old.tries + 1, "done": right and (twin or not old.shown), "at": _now()}
        if not right and kind:
            name = f"{TWIN}{kind}" if twin else kind
            new["wrong"] = {**old.wrong, name: old.wrong.get(name, 0) + 1}
        return new

    return _change(progress, number, id, edit)


def remarks(exercise: Exercise, instead: Exercise | None, verdict: Verdict, after: Entry) -> list[str]:
    """Return the lines below a verdict: the hint, from the third wrong answer on the plainer one, and what opens.

    exercise: the one in the notebook. instead: its twin, if that was asked. after: the entry with this answer.
    """
    asked = instead or exercise
    if verdict.status == RIGHT:
        if after.shown and not after.done:
            return [IS_SHOWN]
        return _outcome(asked)
    lines = [verdict.hint]
    if after.done or after.tries < PATIENCE:
        return [line for line in lines if line]
    lines.append(f"More plainly: {asked.plain}" if asked.plain else "")
    if not after.shown:
        lines.append(f'lab.solution("{exercise.id}") shows the solution.{_then(exercise)}')
    return [line for line in lines if line]


def _outcome(exercise: Exercise) -> list[str]:
    """What a right decision does, from its solution's text without the line of code."""
    if not isinstance(exercise.solution, Mapping):
        return []
    lines = exercise.worked.splitlines()
    said = [line for line in lines if line.startswith("#")] if len(lines) > 1 else lines
    text = " ".join(line.lstrip("# ") for line in said)
    return [text[:1].upper() + text[1:]] if text else []


def show(exercise: Exercise, progress: Progress, number: str) -> tuple[str, list[str]]:
    """Return heading and lines for `lab.solution`: the solution, or how many answers are missing until it opens."""
    now, title = entry(progress, number, exercise.id), exercise.title[:1].upper() + exercise.title[1:]
    if not (now.done or now.shown or now.tries >= PATIENCE):
        left = PATIENCE - now.tries
        return f"{title}: the solution is closed.", [
            f"It opens after {left} more wrong answer{'' if left == 1 else 's'}. Each gets a hint."
        ]
    if not now.done:
        _change(progress, number, exercise.id, lambda stored: {**_dict(stored), "shown": True})
    lines = [text_of(exercise)]
    if now.done:
        return f"{title}: the solution.", lines
    if exercise.twin is not None:
        lines += [
            f"Now with other numbers: {exercise.twin.question}",
            f'Write your answer into the cell above, and run lab.check("{exercise.id}", ...) again.',
        ]
    else:
        lines.append(IS_SHOWN)
    return f"{title}: the solution.", lines


def text_of(exercise: Exercise) -> str:
    """Return the solution as text: what the author wrote, the source of a function or a class, or the value."""
    if exercise.worked:
        return exercise.worked
    solution = exercise.solution
    code: Any = solution if inspect.isfunction(solution) or inspect.isclass(solution) else type(solution)
    if inspect.isfunction(code) or str(code.__module__).split(".")[0] == "course":
        try:
            return dedent(inspect.getsource(code)).rstrip()
        except (OSError, TypeError):
            return f"{exercise.title}: its source cannot be found."
    return brief(solution, limit=400)


def shown(progress: Progress, spec: LabSpec) -> set[str]:
    """Return the ids of the exercises whose solution was shown and that are not done."""
    stored = progress.lab(spec.number)["exercises"]
    entries = {exercise.id: read(stored.get(exercise.id)) for exercise in spec.exercises}
    return {name for name, found in entries.items() if found.shown and not found.done}


def not_graded(name: str, error: str) -> list[str]:
    """Return the lines of a card for an answer whose cell raised."""
    return [
        f"The cell that sets {name} stopped with {error.rstrip('.')}.",
        f"Repair it and run it. Until then {name} has its value from an earlier run, which is not graded.",
    ]


def _then(exercise: Exercise) -> str:
    return " After that, the same question with other numbers counts." if exercise.twin else ""


def read(stored: Any) -> Entry:
    """Return what is stored for an exercise as an entry; anything of another shape counts as nothing."""
    known = _dict(stored)
    wrong = {str(kind): _number(count) for kind, count in _dict(known.get("wrong")).items() if _number(count)}
    return Entry(_number(known.get("tries")), known.get("done") is True, known.get("shown") is True, wrong)


def _number(stored: Any) -> int:
    return stored if isinstance(stored, int) and not isinstance(stored, bool) and stored > 0 else 0


def _dict(stored: Any) -> dict[str, Any]:
    return stored if isinstance(stored, dict) else {}


def _change(progress: Progress, number: str, id: str, edit: Callable[[Any], dict[str, Any]]) -> Entry:
    """Change an entry; under the progress file's lock, so that two open notebooks lose nothing."""
    latest: list[Any] = []

    def edited(stored: Any) -> dict[str, Any]:
        latest.append(edit(stored))
        return latest[-1]

    progress.change(number, "exercises", id, edited)
    return read(latest[-1])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
