"""The facts of a lab on disk: `facts.json` beside its lesson, what the lesson's `facts()` returned."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from course.base import files
from course.exercises.holes import Fact
from course.exercises.lesson import FACTS, Lesson, as_stored, stored
from course.lessons import available, find


def under(root: Path, number: str) -> dict[str, Fact]:
    """Return the stored facts of a lab of the project at `root`; none if there are none."""
    return stored(_home(root, number))


def refresh(root: Path, numbers: Iterable[str], *, write: bool) -> list[str]:
    """Compute the facts of labs and store those that changed; write=False: only say where they differ.

    Returns faults, each with the lab's file. A lab of the project at `root` that is no lesson here is passed over.
    """
    faults = []
    for number in numbers:
        home = _home(root, number)
        if number not in available() or not home.parent.is_dir():
            continue
        lesson = find(number)
        try:
            faults += _refresh(lesson, home, write)
        except Exception as error:  # whatever a scenario raises: the other labs are still built
            faults.append(f"lab{number}/facts.py: {type(error).__name__}: {error}")
    return faults


def _refresh(lesson: Lesson, home: Path, write: bool) -> list[str]:
    fresh, before = lesson.computed(), stored(home)
    if fresh == before:
        return []
    if not write:
        moved = sorted(name for name in {*fresh, *before} if fresh.get(name) != before.get(name))
        return [f"lab{lesson.number}/{FACTS}: not what facts() returns: {', '.join(moved)}; run `make notebooks`"]
    files.replace(home, as_stored(fresh))
    lesson.forget()
    return []


def _home(root: Path, number: str) -> Path:
    return root / "course" / "lessons" / f"lab{number}" / FACTS
