"""Counted minutes of a notebook: what a learner reads, answers and writes, each at a fixed rate.

Words / 150; 5 s for each line of code that is shown; 1.5 minutes for a task or a prediction, 2 for one that is drawn; 4
for a board; 3 for an exercise that asks for a value, 6 for up to five lines, 12 for a policy; 2 for "Break it"; 0.7 for
a quiz question, a figure or a table. Counted is everything that is rendered, tasks and quiz included, whether it stands
in the notebook or in the lesson: texts, outputs, and of the answers those that every learner meets. The rates are a
plan and not yet fitted to people.

The numbers are stored beside each lesson as `counted.json`, made with the notebooks, so that `course labs` and the
first card of a lab need not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from course.exercises import lesson
from course.exercises.curve import Drawing
from course.exercises.spec import LETTERS, Exercise, LabSpec

WORDS_A_MINUTE, CODE_LINE = 150, 5 / 60
TASK, PREDICTION, DRAWING, BOARD = 1.5, 1.5, 2.0, 4.0
VALUE, LINES, POLICY = 3.0, 6.0, 12.0
SHORT = 5
"""Lines of an answer up to which it counts as LINES and not as POLICY."""
BREAK_IT, PICTURE, QUIZ_QUESTION = 2.0, 0.7, 0.7

STORED = "counted.json"

Cell = Mapping[str, Any]

TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
HEADING = re.compile(r"^##\s+(?:\d+\.?\s+)?(.*?)\s*$", re.MULTILINE)
STUB = re.compile(r"# Your code here: about (\d+) line")
CALL = re.compile(r"""\blab\.(check|predict|recap|quiz|earlier|ticket)\(\s*(?:["'](\w+)["'])?""")
EXPLORER = re.compile(r"^At the start: ", re.MULTILINE)
BOARD_LINE = re.compile(r"^Without the board: ", re.MULTILINE)
INSTEAD = re.compile(r"^ *(Without the mouse: |across: |Given: ).*\n?", re.MULTILINE)
"""In the text form alone: axes, which stand in a picture, and what those do who cannot draw in it."""
TASK_LINE = re.compile(r"^Task \d+\. (.*)$", re.MULTILINE)


@dataclass
class Count:
    """What one section, or one notebook, holds.

    words, lines (of code), tasks, predictions, drawings (predictions that are drawn), boards, questions, pictures
    (figures and tables): numbers. exercises, broken: minutes for exercises and for "Break it".
    """

    words: int = 0
    lines: int = 0
    tasks: int = 0
    predictions: int = 0
    drawings: int = 0
    boards: int = 0
    questions: int = 0
    pictures: int = 0
    exercises: float = 0.0
    broken: float = 0.0

    @property
    def minutes(self) -> float:
        """All of it at the rates above."""
        return (
            self.words / WORDS_A_MINUTE
            + self.lines * CODE_LINE
            + self.tasks * TASK
            + self.predictions * PREDICTION
            + self.drawings * DRAWING
            + self.boards * BOARD
            + self.questions * QUIZ_QUESTION
            + self.pictures * PICTURE
            + self.exercises
            + self.broken
        )

    def __iadd__(self, other: Count) -> Count:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self


@dataclass
class Counted:
    """A notebook by its sections, in order; what stands above the first heading goes to the first section."""

    sections: dict[str, Count] = field(default_factory=dict)

    @property
    def whole(self) -> Count:
        """All sections together."""
        total = Count()
        for count in self.sections.values():
            total += count
        return total

    @property
    def minutes(self) -> int:
        """Of the whole notebook, rounded."""
        return round(self.whole.minutes)


def words(text: str) -> int:
    """The words of a text as it is rendered: pieces with a letter or a digit; of a link what is shown."""
    return sum(1 for piece in LINK.sub(r"\1", text).split() if any(letter.isalnum() for letter in piece))


def count(cells: Iterable[Cell], spec: LabSpec) -> Counted:
    """Count an executed notebook, as it is handed out.

    cells: its cells, as nbformat or JSON has them. spec: what the lab asks.
    """
    counted, name, above, stub = Counted(), "", Count(), 0
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            found = _code(cell, source, spec, stub)
            answer = STUB.search(source)
            stub = int(answer[1]) if answer else (stub if CALL.search(source) is None else 0)
            here = _into(counted, name, above)
            here += found
            continue
        for heading, text in _pieces(source):
            if heading:
                name = heading
                here = _into(counted, name, above)
                here += above
                above = Count()
                here.broken += BREAK_IT * heading.startswith("Break it")
            here = _into(counted, name, above)
            here += _markdown(text)
    return counted


def stored(number: str, kind: str = "core") -> int | None:
    """Return the counted minutes of a lab's core notebook or its "deeper" one, None if none are stored."""
    found = read(number).get(kind)
    minutes = found.get("minutes") if isinstance(found, dict) else None
    return minutes if isinstance(minutes, int) else None


def read(number: str) -> dict[str, Any]:
    """Return what is stored for a lab: {"core": {"minutes": ..., "sections": {...}}, "deeper": ...}, or nothing."""
    try:
        found = json.loads((lesson.find(number).folder / STORED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def as_stored(counted: Counted) -> dict[str, Any]:
    """Return what is written for one notebook: minutes of the whole, and of each section to a tenth."""
    sections = {name: round(count.minutes, 1) for name, count in counted.sections.items()}
    return {"minutes": counted.minutes, "sections": sections}


def _into(counted: Counted, name: str, above: Count) -> Count:
    return counted.sections.setdefault(name, Count()) if name else above


def _pieces(source: str) -> list[tuple[str, str]]:
    """A text cell cut at its `## ` headings: pairs (heading, text with the heading); the first heading may be ""."""
    starts = [match.start() for match in HEADING.finditer(source)]
    edges = [0, *(start for start in starts if start), len(source)]
    found = []
    for start, end in pairwise(edges):
        text = source[start:end]
        match = HEADING.match(text)
        found.append((match[1] if match else "", text))
    return found


def _markdown(text: str) -> Count:
    """Words, tables, pictures and quoted code of a text."""
    found, fenced, in_table = Count(), False, False
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            found.lines += bool(line.strip())
        elif line.lstrip().startswith("|"):
            following = lines[index + 1] if index + 1 < len(lines) else ""
            starts = not in_table and TABLE_RULE.match(following) is not None
            in_table = in_table or starts
            found.pictures += starts
            found.words += 0 if TABLE_RULE.match(line) else words(line.replace("|", " "))
            continue
        else:
            found.pictures += line.count("![")
            found.words += words(line)
        in_table = False
    return found


def _code(cell: Cell, source: str, spec: LabSpec, stub: int) -> Count:
    """Lines of code, what the cell asks, and its outputs."""
    found = Count()
    hidden = cell.get("metadata", {}).get("jupyter", {})
    if not hidden.get("source_hidden"):
        found.lines += sum(1 for line in source.splitlines() if line.strip())
    for kind, id in CALL.findall(source):
        found += _asked(kind, id, spec, stub)
    if not hidden.get("outputs_hidden"):
        for output in cell.get("outputs", ()):
            found += _output(output, spec)
    return found


def _asked(kind: str, id: str, spec: LabSpec, stub: int) -> Count:
    """What a call on the lab asks of a learner, and what is said to the answer; the question itself is an output."""
    prediction = next((p for p in spec.predictions if p.id == id), None)
    if kind == "predict":
        return Count(drawings=1) if isinstance(prediction, Drawing) else Count(predictions=1)
    if kind == "recap":
        if prediction is None:
            return Count()
        if isinstance(prediction, Drawing):
            return Count(words=words(prediction.why) + max(map(words, prediction.answers.values()), default=0))
        right = int(prediction.right)
        showed = f"The lab showed: {LETTERS[right]}) {prediction.options[right]} {prediction.why}"
        return Count(words=words(showed) + max(map(words, prediction.answers), default=0))
    if kind == "check":
        exercise = next((e for e in spec.exercises if e.id == id), None)
        return Count(exercises=exercise_minutes(exercise, stub) if exercise else 0.0)
    groups = {"quiz": spec.quiz, "earlier": spec.earlier, "ticket": spec.ticket.questions if spec.ticket else ()}
    asked = groups[kind]
    said = sum(words(question.explanations[int(question.right)]) for question in asked)
    setting = words(spec.ticket.setting) if kind == "ticket" and spec.ticket else 0
    return Count(questions=len(asked), words=said + setting)


def exercise_minutes(exercise: Exercise, lines: int) -> float:
    """Return 3 for a value, 6 for a function of up to five lines or a form to fill in, 12 for a policy and the like.

    lines: of the answer, as the stub in the notebook says; 0 if it does not.
    """
    if not callable(exercise.solution) and not hasattr(exercise.solution, "schedule"):
        return LINES if isinstance(exercise.solution, Mapping | Sequence) and len(exercise.solution) > 1 else VALUE
    return LINES if exercise.probes is not None and lines <= SHORT else POLICY


def _output(output: Mapping[str, Any], spec: LabSpec) -> Count:
    """What an output shows, and what it makes one read: of an explorer the answers of its tasks too."""
    if output.get("output_type") == "stream":
        return Count(words=words("".join(output.get("text", ""))))
    data = output.get("data", {})
    if any(mime in data for mime in ("application/vnd.plotly.v1+json", "image/png", "image/svg+xml")):
        return Count(pictures=1)
    text = "".join(data.get("text/plain", ""))
    if EXPLORER.search(text):
        asked = TASK_LINE.findall(text)
        said = sum(words(f"Answer: {task.answer}") for task in spec.tasks if task.text in asked)
        return Count(words=words(_without_rows(text)) + said, tasks=len(asked), pictures=2)
    if BOARD_LINE.search(text):
        return Count(boards=1)  # what is read on it is in its minutes
    if "<table" in "".join(data.get("text/html", "")):
        return Count(pictures=1)
    return Count(words=words(INSTEAD.sub("", text)))


def _without_rows(text: str) -> str:
    """The text form of an explorer without its indented table, which counts as a table."""
    head, found, tasks = text.partition("\nTask 1. ")
    kept = [line for line in head.splitlines() if not line.startswith("  ")]
    return "\n".join([*kept, found + tasks])
