"""The limits of a core notebook: minutes, words, lines, tasks, questions, terms. Pure; faults are sentences.

Each limit has a name, so that a lab that is not rewritten yet can be listed with those that it exceeds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from course.desk.catalogue import CORE, ELECTIVES, PRIMER
from course.exercises.minutes import TABLE_RULE, Counted, count, words
from course.exercises.spec import LabSpec
from course.notebooks.source import PRIMER_HEADINGS

MINUTES = 60
CAPSTONE, CAPSTONE_MINUTES, CAPSTONE_QUIZ = CORE[-1], 90, 20
"""The last lab asks again what others taught, one question for each of their objectives, and has more time."""
CODE_LINES = 15
EXPLAIN_WORDS, STORY_WORDS = 400, 150
OBJECTIVES, QUIZ, TASKS, TERMS, PREDICTIONS, EXERCISES = 3, 4, 8, 8, 2, (3, 4)
BESIDE_A_BOARD = 6
"""Tasks of a lab in which a board is played."""
PART_MINUTES, PRIMER_TERMS, PRIMER_TEST = 15, 12, 6
PARTS = PRIMER_HEADINGS[1:3]
"""Of the primer; each has one prediction, one task and one check."""

Cell = Mapping[str, Any]


def limits(cells: Sequence[Cell], spec: LabSpec, there: Collection[str]) -> dict[str, str]:
    """Return the limits that a core notebook does not keep: a sentence for each, by the limit's name.

    cells: of the executed notebook as it is handed out. spec: what the lab asks. there: numbers of the labs that exist,
    since a lab repeats questions only from those.
    """
    counted = count(cells, spec)
    if spec.number == PRIMER:
        return _primer_limits(cells, spec, counted)
    last = spec.number == CAPSTONE
    minutes, quiz = (CAPSTONE_MINUTES, CAPSTONE_QUIZ) if last else (MINUTES, QUIZ)
    found = {
        "minutes": _above(counted.minutes, minutes, "counted minutes"),
        "code": _code(cells),
        "explain": _above(_explain_words(cells), EXPLAIN_WORDS, "words of text in Explain"),
        "story": _above(_story_words(cells), STORY_WORDS, "words in the story of The question"),
        "objectives": _objectives(spec),
        "predictions": _not(len(spec.predictions), PREDICTIONS, "predictions"),
        "beliefs": _beliefs(spec),
        "tasks": _tasks(counted),
        "exercises": _not(len(spec.exercises), EXERCISES, "exercises, a decision included"),
        "hints": _hints(spec),
        "ticket": "" if spec.ticket else "no ticket in Break it",
        "quiz": _not(len(spec.quiz), quiz, "quiz questions"),
        "earlier": _earlier(spec, there),
        "terms": _terms(spec, TERMS),
    }
    return {name: fault for name, fault in found.items() if fault}


def _primer_limits(cells: Sequence[Cell], spec: LabSpec, counted: Counted) -> dict[str, str]:
    """The same for the primer, which has two parts in place of the eight sections."""
    minutes = {name: part.minutes for name, part in counted.sections.items() if name.startswith(PARTS)}
    long = [f"{name!r} has {value:.1f}" for name, value in minutes.items() if value > PART_MINUTES]
    found = {
        "minutes": f"more than {PART_MINUTES} counted minutes: {', '.join(long)}" if long else "",
        "code": _code(cells),
        "objectives": _objectives(spec),
        "predictions": _not(len(spec.predictions), len(PARTS), "predictions"),
        "beliefs": _beliefs(spec),
        "tasks": _not(counted.whole.tasks, len(PARTS), "tasks"),
        "exercises": _not(len(spec.exercises), len(PARTS), "exercises"),
        "hints": _hints(spec),
        "quiz": _not(len(spec.quiz), PRIMER_TEST, "questions of the test"),
        "terms": _terms(spec, PRIMER_TERMS),
    }
    return {name: fault for name, fault in found.items() if fault}


def pending(spec: LabSpec, specs: Mapping[str, LabSpec]) -> list[str]:
    """Return the retests of a lab's objectives in labs that do not exist yet."""
    return [objective.retest for objective in spec.objectives if objective.retest[:2] not in specs]


def ties(spec: LabSpec, specs: Mapping[str, LabSpec]) -> list[str]:
    """Return where an objective is tied to what is not there.

    specs: every lab there is, by number.
    """
    faults, known = [], {task.id for task in getattr(spec, "tasks", ())}
    exercises = {exercise.id for exercise in spec.exercises}
    if spec.number not in CORE + ELECTIVES:
        faults.append(f"lab {spec.number} stands neither in CORE nor in ELECTIVES: add it in course/desk/catalogue.py")
    for objective in spec.objectives:
        number, _, name = objective.retest.partition(":")
        if objective.task not in known:
            faults.append(f"{objective.text!r}: the lab has no task {objective.task!r}")
        if objective.exercise not in exercises:
            faults.append(f"{objective.text!r}: the lab has no exercise {objective.exercise!r}")
        if spec.number in CORE + ELECTIVES and not _later(spec.number, number):
            faults.append(f"{objective.text!r}: the retest is in lab {number}, which does not come later")
        if number in specs and name not in _asked(specs[number], spec.number):
            faults.append(
                f"{objective.text!r}: lab {number} has no question {name!r}, neither an earlier one of lab "
                f"{spec.number} nor in its quiz"
            )
    return faults


def _asked(spec: LabSpec, lab: str) -> set[str]:
    """Ids of what a lab asks of an earlier one: before it begins, or on its own subject in the quiz."""
    return {question.id for question in spec.earlier if question.lab == lab} | {question.id for question in spec.quiz}


def _later(here: str, there: str) -> bool:
    """Whether a lab is taken later than another; an elective may come at any time."""
    return there in ELECTIVES or here in ELECTIVES or (there in CORE and CORE.index(there) > CORE.index(here))


def _earlier(spec: LabSpec, there: Collection[str]) -> str:
    """One question from the lab before and one from three or more back, if there are such labs; two at most.

    The primer may be asked about and need not be, since its test lets people skip it.
    """
    if spec.number not in CORE:
        return "" if len(spec.earlier) == 2 else f"{len(spec.earlier)} questions from earlier labs, not 2"
    before = CORE[: CORE.index(spec.number)]
    asked = [question.lab for question in spec.earlier]
    wrong = [lab for lab in asked if lab not in before]
    if wrong:
        return f"a question from lab {wrong[0]}, which does not come before"
    taken = [lab for lab in before if lab in there and lab != PRIMER]
    last, far = ([lab for lab in part if lab in taken] for part in (before[-1:], before[:-2]))
    for name, labs in (("the lab before", last), ("three or more labs back", far)):
        if labs and not any(lab in labs for lab in asked):
            return f"no question from {name}: {', '.join(labs)}"
    return f"{len(asked)} questions from earlier labs, at most 2" if len(asked) > 2 else ""


def _above(number: int, most: int, what: str) -> str:
    return f"{number} {what}, at most {most}" if number > most else ""


def _not(number: int, wanted: int | tuple[int, ...], what: str) -> str:
    allowed = wanted if isinstance(wanted, tuple) else (wanted,)
    return "" if number in allowed else f"{number} {what}, not {' or '.join(map(str, allowed))}"


def _code(cells: Iterable[Cell]) -> str:
    long = [
        f"cell {index} has {lines}"
        for index, cell in enumerate(cells)
        if cell["cell_type"] == "code" and (lines := _shown_lines(cell)) > CODE_LINES
    ]
    return f"more than {CODE_LINES} lines of code: {', '.join(long)}" if long else ""


def _shown_lines(cell: Cell) -> int:
    if cell.get("metadata", {}).get("jupyter", {}).get("source_hidden"):
        return 0
    return sum(1 for line in "".join(cell["source"]).splitlines() if line.strip())


def _section(cells: Iterable[Cell], heading: str) -> list[str]:
    """The texts of a section, one for each text cell."""
    found, inside = [], False
    for cell in cells:
        if cell["cell_type"] != "markdown":
            continue
        kept = []
        for line in "".join(cell["source"]).splitlines():
            if line.startswith("## "):
                inside = line[3:].lstrip("0123456789. ").startswith(heading)
            elif inside:
                kept.append(line)
        found += ["\n".join(kept)] if kept else []
    return found


def _explain_words(cells: Iterable[Cell]) -> int:
    """Words of the texts in Explain; tables are counted in minutes and not here."""
    lines = [line for text in _section(cells, "Explain") for line in text.splitlines()]
    return sum(words(line) for line in lines if not line.lstrip().startswith("|") and not TABLE_RULE.match(line))


def _story_words(cells: Iterable[Cell]) -> int:
    """Words of The question, without lists (what one needs, what one can do) and without headings."""
    lines = [line for text in _section(cells, "The question") for line in text.splitlines()]
    return sum(words(line) for line in lines if not re.match(r"\s*([-*|#]|\d+\.)\s", line))


def _objectives(spec: LabSpec) -> str:
    many = len(spec.objectives)
    return "" if 1 <= many <= OBJECTIVES else f"{many} objectives, at least 1 and at most {OBJECTIVES}"


def _beliefs(spec: LabSpec) -> str:
    without = [prediction.id for prediction in spec.predictions if not any(prediction.beliefs)]
    return f"predictions without beliefs: {', '.join(without)}" if without else ""


def _tasks(counted: Counted) -> str:
    return _not(counted.whole.tasks, BESIDE_A_BOARD if counted.whole.boards else TASKS, "tasks")


def _hints(spec: LabSpec) -> str:
    bare = [exercise.id for exercise in spec.exercises if not exercise.plain]
    return f"exercises without a second, plainer hint: {', '.join(bare)}" if bare else ""


def _terms(spec: LabSpec, most: int) -> str:
    many = len(spec.terms)
    return "" if 1 <= many <= most else f"{many} new terms, at least 1 and at most {most}"
