"""Counted minutes on disk: `counted.json` beside each lesson, and the tables that print them.

README.md has a row for each lab, docs/instructor.md a table by sections between two comments. Both are written with the
notebooks and never by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from course.base import files
from course.exercises import minutes
from course.exercises.names import is_deeper
from course.lessons import available, load
from course.notebooks import agenda, check, proof
from course.notebooks.source import HEADINGS, PRIMER_HEADINGS

LARGEST = 100_000_000  # bytes of a notebook or a text
BEGIN, END = "<!-- counted minutes: written by `make notebooks` -->", "<!-- end of counted minutes -->"
ROWS = (
    ("Primer: part 1", PRIMER_HEADINGS[1:2]),
    ("Primer: part 2", PRIMER_HEADINGS[2:3]),
    ("Primer: its story and its test", (PRIMER_HEADINGS[0], PRIMER_HEADINGS[3])),
    ("The question, Predict", ("The question", "Predict")),
    ("Explore", ("Explore",)),
    ("Measure, Explain", ("Measure", "Explain")),
    ("Exercises", ("Exercises",)),
    ("Break it", ("Break it",)),
    ("Take away, quiz", ("Take away",)),
)
README_ROW = re.compile(r"^\| (\d\d) \| ([^|]*) \| ([^|]*) \|", re.MULTILINE)


def kind_of(path: Path) -> str:
    """Return "deeper" for a notebook that goes deeper, "core" for a lab."""
    return "deeper" if is_deeper(path.name) else "core"


def of_notebook(path: Path) -> minutes.Counted | None:
    """Count a stored lab notebook; None if there is none that can be read, or no lesson that belongs to it."""
    if path.name[:2] not in available():
        return None
    try:
        notebook = check.read(files.read(path, LARGEST))
    except (OSError, ValueError):
        return None  # the build names it
    return minutes.count(notebook.cells, load(path.name[:2]))


def new_terms(number: str) -> tuple[str, ...]:
    """The terms that a lab introduces; none if no lesson has this number."""
    return load(number).terms if number in available() else ()


def store(root: Path, labs: Sequence[Path]) -> list[str]:
    """Count the notebooks at `labs` and write what has changed. Returns the numbers of labs whose minutes moved."""
    moved = []
    for path in labs:
        counts, home = of_notebook(path), _home(root, path.name[:2])
        if counts is None or not home.parent.is_dir():
            continue
        before = _stored(home)
        after = {**before, kind_of(path): minutes.as_stored(counts)}
        if after != before:
            files.replace(home, (json.dumps(after, indent=1, sort_keys=True) + "\n").encode())
        if (
            after[kind_of(path)]["minutes"] != before.get(kind_of(path), {}).get("minutes")
            and path.name[:2] not in moved
        ):
            moved.append(path.name[:2])
    return moved


def faults(root: Path, labs: Sequence[Path]) -> list[str]:
    """Where what is stored or printed differs from the notebooks."""
    sentences = []
    for path in labs:
        counts, home = of_notebook(path), _home(root, path.name[:2])
        if counts is None or not home.parent.is_dir():
            continue
        listed = _stored(home).get(kind_of(path), {}).get("minutes")
        if listed != counts.minutes:
            sentences.append(f"labs/{path.name}: {counts.minutes} counted minutes, but {minutes.STORED} says {listed}")
    for name, write in TABLES.items():
        text = _text(root / name)
        if text is not None and write(text) != text:
            sentences.append(f"{name}: its minutes are not the counted ones; `make notebooks` writes them")
    return sentences


def write_tables(root: Path) -> None:
    """Write the counted minutes into README.md and docs/instructor.md, if those exist."""
    for name, write in TABLES.items():
        text = _text(root / name)
        if text is not None and write(text) != text:
            files.replace(root / name, write(text).encode())


def readme(text: str) -> str:
    """Return the README with the counted minutes in its rows `| 03 | title | minutes | ...`."""

    def row(match: re.Match[str]) -> str:
        number = minutes.stored(match[1])
        return match[0] if number is None else f"| {match[1]} | {match[2]} | {number} |"

    return README_ROW.sub(row, text)


def instructor(text: str) -> str:
    """Return the instructor's guide with the table of sections between its two comments."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    return f"{head}{begin}\n\n{section_table()}\n\n{end}{tail}" if begin and end else text


def section_table() -> str:
    """The table of counted minutes: a column for each lab, a row for each part, and what goes deeper."""
    labs = {number: minutes.read(number) for number in available()}
    labs = {number: stored for number, stored in labs.items() if "core" in stored}
    lines = ["| | " + " | ".join(f"Lab {number}" for number in labs) + " |", "|---" * (len(labs) + 1) + "|"]
    for title, names in ROWS:
        cells = [_of_sections(stored["core"]["sections"], names) for stored in labs.values()]
        if any(cells):
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines.append("| **Lab** | " + " | ".join(f"**{stored['core']['minutes']}**" for stored in labs.values()) + " |")
    if any("deeper" in stored for stored in labs.values()):
        more = [str(stored["deeper"]["minutes"]) if "deeper" in stored else "" for stored in labs.values()]
        lines.append("| goes deeper, optional | " + " | ".join(more) + " |")
    return "\n".join(lines)


def _of_sections(sections: Mapping[str, float], names: tuple[str, ...]) -> str:
    """The minutes of sections that begin with one of these names; nothing if a lab has none of them."""
    section_minutes = [value for key, value in sections.items() if key.startswith(names)]
    return str(round(sum(section_minutes))) if section_minutes else ""


TABLES: dict[str, Callable[[str], str]] = {
    "README.md": readme,
    "docs/instructor.md": instructor,
    "docs/instructor/agendas.md": lambda _text: agenda.agendas(),
    "docs/instructor/wrong-answers.md": lambda _text: agenda.wrong_answers(),
    "docs/instructor/forms.md": lambda _text: proof.page(),
}
assert {name for _, names in ROWS for name in names} == {*PRIMER_HEADINGS, *HEADINGS}


def _home(root: Path, number: str) -> Path:
    return root / "course" / "lessons" / f"lab{number}" / minutes.STORED


def _stored(home: Path) -> dict[str, Any]:
    try:
        content = json.loads(files.read(home, LARGEST))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _text(path: Path) -> str | None:
    try:
        return files.read(path, LARGEST).decode("utf-8")
    except (OSError, ValueError):
        return None
