"""What a class has done: the exports of many learners, added up. Nobody's name is in them, nor can one be found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from course.exercises import capstone
from course.exercises.export import DRAWN, FORM, GONE, SCHEMA
from course.exercises.spec import LETTERS

ID = re.compile(r"[A-Za-z0-9][\w-]{0,59}")
KINDS = 200
"""Letters of the name of a kind of wrong answer; the longest in the course has a third of it."""
MOST = 100_000
"""Answers of one learner to one exercise: more were never typed."""
LETTER = {*LETTERS, GONE, DRAWN}


@dataclass
class Exercise:
    """One exercise over the class. first: solved with the first answer. wrong: answers by kind, of all learners."""

    done: int = 0
    first: int = 0
    shown: int = 0
    tried: int = 0
    wrong: Counter[str] = field(default_factory=Counter)


@dataclass
class LabCount:
    """One lab over the class: learners who began it, and by id what they did.

    predictions, quiz: the letters of the first answer and of the last. tasks: "done" and "shown". designs: what each
    design is worth, in the order of the files. refused: why a design is none.
    """

    began: int = 0
    predictions: dict[str, Counter[str]] = field(default_factory=dict)
    tasks: dict[str, Counter[str]] = field(default_factory=dict)
    exercises: dict[str, Exercise] = field(default_factory=dict)
    quiz: dict[str, tuple[Counter[str], Counter[str]]] = field(default_factory=dict)
    designs: list[dict[str, float]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@dataclass
class ClassCount:
    """The class: how many exports were added, and each lab by its number. versions: of the course, as exported."""

    learners: int = 0
    labs: dict[str, LabCount] = field(default_factory=dict)
    versions: Counter[str] = field(default_factory=Counter)
    seen: set[int] = field(default_factory=set)

    def add(self, export: Any) -> None:
        """Count one export. Raises ValueError for what is none, or is one that was counted; then nothing is counted."""
        checked = _checked(export)
        copy = checked["copy"]
        if copy in self.seen:
            raise ValueError("is a copy of an export that is counted already")
        self.seen.add(copy)
        self.learners += 1
        self.versions[checked["version"]] += 1
        for number, lab in checked["labs"].items():
            self._add_lab(number, self.labs.setdefault(number, LabCount()), lab)

    def _add_lab(self, number: str, count: LabCount, lab: Mapping[str, Any]) -> None:
        count.began += 1
        for id, given in lab["predictions"].items():
            count.predictions.setdefault(id, Counter())[given["first"]] += 1
        for id, given in lab["quiz"].items():
            first, last = count.quiz.setdefault(id, (Counter(), Counter()))
            first[given["first"]] += 1
            last[given["last"]] += 1
        for id, state in lab["tasks"].items():
            count.tasks.setdefault(id, Counter())[state] += 1
        for id, entry in lab["exercises"].items():
            exercise = count.exercises.setdefault(id, Exercise())
            exercise.done += entry["done"]
            exercise.first += entry["done"] and entry["tries"] == 1
            exercise.shown += entry["shown"] and not entry["done"]
            exercise.tried += not (entry["done"] or entry["shown"])
            exercise.wrong.update(entry["wrong"])
        if "design" in lab:
            try:
                count.designs.append(capstone.score(number, lab["design"]))
            except ValueError as error:
                count.refused.append(str(error))


def merged(exports: Iterable[Any]) -> ClassCount:
    """Count exports, all of which must be whole. Raises ValueError as `ClassCount.add`."""
    count = ClassCount()
    for export in exports:
        count.add(export)
    return count


def _checked(export: Any) -> dict[str, Any]:
    """The export as it is counted, without what no version of the course writes; ValueError if it is none."""
    if not isinstance(export, Mapping) or export.get("form") != FORM:
        held = isinstance(export, Mapping) and "schema" in export and "labs" in export
        raise ValueError("is a learner's progress itself: the learner makes the file with `course progress --export`"
                         if held else "is no export of `course progress`")  # fmt: skip
    schema = export.get("schema")
    if not isinstance(schema, int) or not _whole(schema, 1):
        raise ValueError("says no schema: it is cut or was changed")
    if schema > SCHEMA:
        raise ValueError("was exported by a newer version of the course: update this one")
    copy, version, labs = export.get("copy"), export.get("version"), export.get("labs")
    if not _whole(copy) or not isinstance(version, str) or len(version) > 60 or not isinstance(labs, Mapping):
        raise ValueError("lacks its number, its version or its labs: it is cut or was changed")
    if len(labs) > 100:
        raise ValueError(f"has {len(labs):,} labs: it was changed")
    return {"copy": copy, "version": version, "labs": {_id(n, "lab"): _lab(n, lab) for n, lab in labs.items()}}


def _lab(number: str, lab: Any) -> dict[str, Any]:
    """One lab of an export, checked."""
    out: dict[str, Any] = {}
    for part, check in (("predictions", _given), ("quiz", _given), ("tasks", _state), ("exercises", _exercise)):
        entries = _mapping(lab, f"lab {number}").get(part, {})
        if len(_mapping(entries, f"lab {number}, {part}")) > 1_000:
            raise ValueError(f"has {len(entries):,} {part} in lab {number}: it was changed")
        out[part] = {_id(id, part): check(entry, f"lab {number}, {id}") for id, entry in entries.items()}
    return {**out, "design": lab["design"]} if "design" in lab else out


def _given(entry: Any, where: str) -> dict[str, str]:
    given = {key: _mapping(entry, where).get(key) for key in ("first", "last")}
    if not all(isinstance(letter, str) and letter in LETTER for letter in given.values()):
        raise ValueError(f"has an answer that is no letter ({where})")
    return {key: str(letter) for key, letter in given.items()}


def _state(entry: Any, where: str) -> str:
    if entry not in ("done", "shown"):
        raise ValueError(f"has a task that is neither done nor shown ({where})")
    return str(entry)


def _exercise(entry: Any, where: str) -> dict[str, Any]:
    found = _mapping(entry, where)
    tries, wrong = found.get("tries"), _mapping(found.get("wrong", {}), where)
    states = [found.get(name) for name in ("done", "shown")]
    if not _whole(tries) or not all(isinstance(state, bool) for state in states):
        raise ValueError(f"does not say how often an exercise was answered, or whether it is done ({where})")
    if not all(_kind(kind) and _whole(number, 1) for kind, number in wrong.items()) or sum(wrong.values()) > tries:
        raise ValueError(f"has more wrong answers than answers, or some that are no number ({where})")
    return {"tries": tries, "done": states[0], "shown": states[1], "wrong": dict(wrong)}


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"lacks a table where there should be one ({where})")
    return value


def _id(id: Any, what: str) -> str:
    if not isinstance(id, str) or not ID.fullmatch(id):
        raise ValueError(f"has {what} under a name that the course never gives")
    return id


def _kind(kind: str) -> bool:
    return 0 < len(kind) <= KINDS and kind.isprintable()


def _whole(value: Any, low: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= MOST * MOST
