"""`python -m course.notebooks.catalogue [--check]` writes down what each lab asks, for all that only lists the labs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course.desk.catalogue import FILE
from course.exercises import minutes
from course.exercises.standing import WORDS
from course.figures import in_page
from course.lessons import available, load
from course.notebooks import symptoms

SHEET = FILE.parent / "lab_extensions" / "llm-batching-course" / "static" / "figures.css"


def entries() -> dict[str, dict[str, Any]]:
    """Title, counted minutes and ids of each lab that has exercises, by number."""
    labs = {}
    for number in available():
        spec = load(number)
        asks = {part: [item.id for item in getattr(spec, part, ())] for part in WORDS}
        labs[number] = {
            "title": spec.title,
            "minutes": minutes.stored(number),
            "deeper": minutes.stored(number, "deeper"),
            "asks": {part: ids for part, ids in asks.items() if ids},
        }
    return labs


def text() -> str:
    """The content of the file."""
    return json.dumps(entries(), indent=1, ensure_ascii=False) + "\n"


WRITTEN: dict[Path, Callable[[], str]] = {FILE: text, symptoms.FILE: symptoms.text, SHEET: in_page.sheet}


def main(arguments: list[str] | None = None) -> int:
    """Write the file and the others of WRITTEN, or with --check only compare them; 1 if one differs."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    stale = [(file, fresh) for file, fresh in ((file, make()) for file, make in WRITTEN.items())
             if not file.is_file() or file.read_text(encoding="utf-8") != fresh]  # fmt: skip
    for file, fresh in stale:
        if check:
            print(f"{file.name} does not match the labs: run `make notebooks`", file=sys.stderr)
        else:
            file.write_text(fresh, encoding="utf-8")
            print(f"{file.name} is written")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
