"""What a learner hands to whoever teaches: which tasks and exercises are done, and which answers were given.

Ids and letters of the course, numbers, and the flags of a design; nothing else that a learner has typed: no names, no
paths, no times. A lab that was begun again (`course reset --progress`) is counted with what was done before.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from course.base import files
from course.exercises import capstone
from course.exercises.lesson import available, load
from course.exercises.progress import LARGEST, PARTS, Progress
from course.exercises.solutions import read
from course.exercises.spec import LETTERS
from course.exercises.standing import answers, drawn, task_state

FORM = "course progress"
SCHEMA = 1
DRAWN = "drawn"
"""In place of a letter, for a prediction that is a curve."""
GONE = "?"
"""In place of a letter, for an option that the lab no longer has."""
Parts = Mapping[str, Mapping[str, Any]]


def export(progress: Progress, version: str) -> dict[str, Any]:
    """Everything that goes out, as plain JSON values.

    version: of the course. `copy` is a number drawn at each export, by which a file that was copied is known again.
    """
    found: dict[str, list[Parts]] = {}
    for state in [*_put_aside(progress), progress.stored()]:
        for number, parts in state.items():
            found.setdefault(number, []).append(parts)
    labs = {number: of_lab(number, several) for number, several in sorted(found.items())}
    labs = {number: lab for number, lab in labs.items() if any(lab.values())}
    return {"form": FORM, "schema": SCHEMA, "version": version, "copy": secrets.randbelow(10**9), "labs": labs}


def of_lab(number: str, several: list[Parts]) -> dict[str, Any]:
    """One lab, of one state or of several, the oldest first: what was done in any of them is done."""
    spec = load(number) if number in available() else None  # None: a lab of another version of the course
    out: dict[str, Any] = {"predictions": {}, "tasks": {}, "exercises": {}, "quiz": {}}
    for parts in several:
        for part, items in (("predictions", "predictions"), ("quiz", "questions")):
            options = {one.id: getattr(one, "options", ()) for one in getattr(spec, items, ())}
            for id, entry in _part(parts, part).items():
                letters = [_letter(one["answer"], options.get(id, ())) for one in answers(entry)]
                letters = letters or ([DRAWN] if drawn(entry) else [])
                if letters:
                    first = out[part].get(id, {}).get("first", letters[0])
                    out[part][id] = {"first": first, "last": letters[-1]}
        for id, entry in _part(parts, "tasks").items():
            if task_state(entry) and out["tasks"].get(id) != "done":
                out["tasks"][id] = task_state(entry)
        for id, entry in _part(parts, "exercises").items():
            now, before = read(entry), read(out["exercises"].get(id))
            wrong = {k: now.wrong.get(k, 0) + before.wrong.get(k, 0) for k in sorted({*now.wrong, *before.wrong})}
            if now.tries or now.shown:
                out["exercises"][id] = {"tries": now.tries + before.tries, "done": now.done or before.done,
                                        "shown": now.shown or before.shown, "wrong": wrong}  # fmt: skip
    whole = ({name: _part(parts, name) for name in PARTS} for parts in reversed(several))
    designs = [design for parts in whole if (design := capstone.design_of(number, parts)) is not None]
    return {**out, "design": designs[0]} if designs else out


def _put_aside(progress: Progress) -> list[dict[str, Parts]]:
    """What `course reset --progress` has put aside, by lab, the oldest first; what cannot be read counts as nothing."""
    found: list[dict[str, Parts]] = []
    for path in sorted(progress.path.parent.glob("progress.lab*-*.json")):
        try:
            labs = json.loads(files.read(path, LARGEST))["labs"]
            found.append({str(number): parts for number, parts in labs.items() if isinstance(parts, dict)})
        except (OSError, files.TooLarge, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return found


def _part(parts: Parts, name: str) -> Mapping[str, Any]:
    part = parts.get(name)
    return part if isinstance(part, Mapping) else {}


def _letter(answer: str, options: tuple[str, ...]) -> str:
    return LETTERS[options.index(answer)] if answer in options else GONE
