"""docs/coverage.md: each place that it names is there."""

import json
import re

import pytest

from course.cli import COMMANDS
from course.desk.catalogue import catalogue
from course.exercises.names import is_deeper


def rows(root):
    """(heading, cells) of each row of the tables."""
    text = (root / "docs" / "coverage.md").read_text(encoding="utf-8")
    for part in text.split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        for line in re.findall(r"^\| (.+) \|$", body, re.M)[1:]:
            if not line.startswith("---"):
                yield heading, line.split(" | ")


@pytest.fixture(scope="module")
def headings(root):
    """The headings of each deeper notebook, by number."""
    found = {}
    for path in (root / "labs").glob("*.ipynb"):
        if is_deeper(path.name):
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
            found[path.name[:2]] = set(re.findall(r"^#+ (.+)$", text, re.M))
    return found


def problem(place, root, headings):
    """Why a place cannot be found; nothing if it can."""
    labs = catalogue()
    if match := re.fullmatch(r"(\d\d)(?::(\w+))?", place):
        number, name = match.groups()
        if number not in labs:
            return "no such lab"
        asked = labs[number]
        ids = {item.id for part in (asked.predictions, asked.tasks, asked.exercises, asked.quiz) for item in part}
        return "" if name is None or name in ids else "no such id"
    if match := re.fullmatch(r'(\d\d) deeper, "(.+)"', place):
        return "" if match[2] in headings.get(match[1], ()) else "no such section"
    if place.startswith("course "):
        return "" if place.removeprefix("course ") in COMMANDS else "no such command"
    return "" if (root / place).is_file() else "no such file"


def test_each_place_is_there(root, headings):
    wrong = [
        f"{place}: {why}"
        for heading, cells in rows(root)
        if heading != "Not taught"
        for place in re.findall(r"`([^`]+)`", cells[-1])
        if (why := problem(place, root, headings))
    ]
    assert not wrong


def test_each_row_has_a_place(root):
    assert not [cells for heading, cells in rows(root) if heading != "Not taught" and "`" not in cells[-1]]
    assert not [cells for heading, cells in rows(root) if heading == "Not taught" and len(cells) != 3]


def test_each_interview_question_and_knowledge_check_has_a_question_of_a_quiz(root):
    """Eight and four, in the notes."""
    asked = [cells for _, cells in rows(root) if re.match(r"(Q|K\d): ", cells[0])]
    assert len(asked) == 12
    quiz = {f"{number}:{item.id}" for number, lab in catalogue().items() for item in lab.quiz}
    assert not [cells for cells in asked if not quiz & set(re.findall(r"`([^`]+)`", cells[-1]))]
