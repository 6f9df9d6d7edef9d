"""What the course itself puts into the learner's folder: start page, glossary, and the solutions of attempted labs.

All of it is refreshed, and none of it replaces a file of the learner's: a page carries a digest of its own text, so one
that a learner has changed, or that was there before, is left alone and the next name is taken.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from course.base import files
from course.desk import start_page
from course.desk.catalogue import catalogue
from course.desk.copies import sentences
from course.desk.places import part_of_the_course, reason
from course.desk.record import LARGEST_LAB, Record, bring, holds
from course.exercises.names import former
from course.exercises.progress import Progress
from course.exercises.standing import attempted

START, GLOSSARY, SOLUTIONS = "START.md", "glossary.md", "solutions"
LARGEST_PAGE = 1_000_000
SEAL = re.compile(rb"\n<!-- written by the course, ([0-9a-f]{16}) -->\n\Z")


def write_pages(labs: Path, mine: Path) -> tuple[Path, list[str]]:
    """Write start page, glossary and open solutions into `mine`. Returns the start page, and a sentence for each fault.

    labs: the handed-out labs; solutions are looked for beside them, and then with the course.

    Raises WorkspaceError: nothing can be written in `mine`.
    """
    progress, names = Progress(), sorted(path.name for path in labs.glob("*.ipynb"))
    with sentences(mine):
        glossary, remarks = _glossary(mine)
        solutions, more = _solutions(labs, mine, progress, names)
        links = start_page.Links(tuple(names), glossary, solutions)
        start = write_page(mine / START, start_page.text(links, catalogue(), progress))
    return start, [*remarks, *more, *progress.notices]


def write_page(path: Path, text: str) -> Path:
    """Write a page, under the next free name if `path` is not a page of ours. Returns where it is."""
    content = sealed(text)
    for name in _names(path):
        if holds(name, content):
            return name
        try:
            files.write_new(name, content)
        except FileExistsError:
            if not is_ours(name):
                continue
            files.replace(name, content)
        return name
    raise FileExistsError(17, "every name for this page is taken: delete some of the old pages", str(path))


def sealed(text: str) -> bytes:
    """A page with the digest by which it is known again."""
    content = text.rstrip("\n").encode()
    return content + f"\n\n<!-- written by the course, {_digest(content)} -->\n".encode()


def is_ours(path: Path) -> bool:
    """Whether a file is a page of the course, unchanged."""
    try:
        content = files.read(path, LARGEST_PAGE)
    except (OSError, files.TooLarge):
        return False
    seal = SEAL.search(content)
    return seal is not None and not path.is_symlink() and _digest(content[: seal.start() - 1]) == seal[1].decode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _names(path: Path) -> Iterator[Path]:
    yield path
    yield from (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(2, 100))


def _glossary(mine: Path) -> tuple[str, list[str]]:
    source = part_of_the_course("docs/glossary.md")
    try:
        text = files.read(source, LARGEST_PAGE).decode()
    except (OSError, ValueError) as error:
        return GLOSSARY, [f"{source} cannot be read: {reason(error)}."]
    return write_page(mine / GLOSSARY, text).name, []


def _solutions(labs: Path, mine: Path, progress: Progress, names: list[str]) -> tuple[dict[str, str] | None, list[str]]:
    """The solutions of the labs that were attempted, by number, as paths from `mine`; copied if they are missing.

    None if the course came without any (`make bundle`).
    """
    by_number: dict[str, str] = {}
    remarks: list[str] = []
    beside = labs.parent / SOLUTIONS
    source = beside if os.path.isdir(beside) else part_of_the_course(SOLUTIONS)
    if not os.path.isdir(source):
        return None, remarks
    open_ = [name for name in names if attempted(name[:2], progress)]
    if not open_:
        return by_number, remarks
    record = Record(mine)
    for name in open_:
        try:
            content = files.read(source / name, LARGEST_LAB)
            (mine / SOLUTIONS).mkdir(exist_ok=True)
            before, now = (one.replace(".ipynb", "_solutions.ipynb") for one in (former(name), name))
            record.rename(mine, before and f"{SOLUTIONS}/{before}", f"{SOLUTIONS}/{now}")
            for copy in _names(mine / SOLUTIONS / now):
                key = f"{SOLUTIONS}/{copy.name}"
                # A solution that the learner has changed stays theirs, and is still what the link opens.
                if bring(copy, key, content, record) != "yours" or key in record.digests:
                    by_number.setdefault(name[:2], key)
                    break
        except (OSError, files.TooLarge) as error:
            remarks.append(f"The solutions of {name} cannot be copied: {reason(error)}.")
    return by_number, remarks + record.save()
