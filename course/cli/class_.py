"""`course class`: the exports of many learners, added up."""

from collections import Counter
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from course.cli.output import echo, json_text, one_line
from course.exercises.spec import LETTERS

if TYPE_CHECKING:
    from course.exercises.class_count import ClassCount, LabCount

MOST_BYTES = 2**22


def class_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What `course progress --export` wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Add up what the learners of a class have done: by task, exercise, prediction and quiz question.

    A file that is broken, or a copy of another one, is named and left out.

    \b
    course class handed-in/*.json
    """
    import course.lessons  # noqa: F401  # each lab registers itself
    from course.exercises.class_count import ClassCount

    count, left_out = ClassCount(), list[str]()
    for path in files:
        try:
            export = _read(path)
        except (OSError, ValueError) as error:
            left_out.append(f"{_why(path, error)}; it is left out")
            continue
        try:
            count.add(export)
        except ValueError as error:
            left_out.append(f"{path.name} is left out: it {error}")
    if not count.learners:
        raise ValueError(f"no file could be counted: {left_out[0]}")
    echo(json_text(_as_json(count, left_out)) if as_json else "\n".join(_as_text(count)))
    for sentence in left_out:
        echo(f"note: {one_line(sentence)}", err=True)


def _read(path: Path) -> Any:
    from course.base.textfiles import json_value, text

    return json_value(path, text(path, "export of `course progress`", "JSON", MOST_BYTES))


def _why(path: Path, error: Exception) -> str:
    strerror = getattr(error, "strerror", None)
    return f"{path.name} cannot be read: {strerror}" if strerror else str(error)


def _as_json(count: "ClassCount", left_out: list[str]) -> dict[str, Any]:
    found = _plain(count)
    del found["seen"]
    return {**found, "left_out": left_out}


def _plain(value: Any) -> Any:
    """Dataclasses and counters as dictionaries (`asdict` cannot copy a Counter)."""
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in value]
    found = vars(value) if is_dataclass(value) else value
    return {key: _plain(one) for key, one in found.items()} if isinstance(found, dict) else found


def _as_text(count: "ClassCount") -> list[str]:
    lines = [f"{count.learners} learner{'s' * (count.learners != 1)}."]
    if len(count.versions) > 1:
        lines.append(f"Versions of the course: {_listed(count.versions)}.")
    for number, lab in sorted(count.labs.items()):
        lines += ["", *_of_lab(number, lab)]
    return lines


def _of_lab(number: str, lab: "LabCount") -> list[str]:
    """One lab as lines: an asterisk stands behind the right letter, and behind a kind of wrong answer its hint."""
    from course.exercises.lesson import available, load

    spec: Any = load(number) if number in available() else None
    asked = {name: {item.id: item for item in getattr(spec, name, ())}
             for name in ("predictions", "tasks", "exercises", "questions")}  # fmt: skip
    title = spec.title if spec else "not in this version of the course"
    lines = [f"Lab {number}, {title}: {lab.began} began it"]
    for id in _ordered(asked["predictions"], lab.predictions):
        lines.append(f"  prediction {id}: {_letters(lab.predictions.get(id), asked['predictions'].get(id))}")
    for id in _ordered(asked["tasks"], lab.tasks):
        states = lab.tasks.get(id, Counter[str]())
        lines.append(f"  task {id}: {states.get('done', 0)} done, {states.get('shown', 0)} shown")
    for id in _ordered(asked["exercises"], lab.exercises):
        found, hints = lab.exercises.get(id), _hints(asked["exercises"].get(id))
        if found is None:
            lines.append(f"  exercise {id}: nobody")
            continue
        first = f" ({found.first} with the first answer)" if found.first else ""
        lines.append(f"  exercise {id}: {found.done} done{first}, {found.shown} shown, {found.tried} tried")
        lines += [
            f"    wrong {number} x {one_line(kind)}{hints.get(kind, '')}" for kind, number in found.wrong.most_common()
        ]
    for id in _ordered(asked["questions"], lab.quiz):
        began, last = lab.quiz.get(id, (None, None))
        said = _letters(began, asked["questions"].get(id))
        lines.append(
            f"  question {id}: {said}"
            + (f"; at last {_letters(last, asked['questions'].get(id))}" if last != began else "")
        )
    names = sorted({name for design in lab.designs for name in design})
    for name in names:
        values = sorted(design[name] for design in lab.designs if name in design)
        lines.append(f"  design, {one_line(name)}: {len(values)} scored again, from {values[0]:g} to {values[-1]:g}")
    return lines + [f"  a design that cannot be scored: {one_line(why)}" for why in lab.refused]


def _ordered(asked: dict[str, Any], counted: dict[str, Any]) -> list[str]:
    """The ids of the lab in its order, and behind them those that only other versions have."""
    return [*asked, *sorted(set(counted) - set(asked))]


def _letters(given: Any, item: Any) -> str:
    right = LETTERS[int(item.right)] if item is not None and hasattr(item, "right") else None
    marked = {letter: f"{letter}*" if letter == right else letter for letter in given or ()}
    return ", ".join(f"{marked[letter]} {given[letter]}" for letter in sorted(marked)) or "nobody"


def _hints(exercise: Any) -> dict[str, str]:
    twin = exercise.twin.mistakes if exercise is not None and exercise.twin else ()
    own = {mistake.name: f": {mistake.hint}" for mistake in getattr(exercise, "mistakes", ())}
    return own | {f"twin: {mistake.name}": f": {mistake.hint}" for mistake in twin}


def _listed(versions: Any) -> str:
    return ", ".join(f"{one_line(version)} ({number})" for version, number in versions.most_common())
