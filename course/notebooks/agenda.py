"""Pages for whoever teaches: agendas with clock times from counted minutes, and every wrong answer with its hint."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import yaml

from course.exercises import minutes
from course.exercises.spec import LabSpec
from course.lessons import available, load

WHOLE = "whole"


@cache
def plan() -> dict[str, Any]:
    """What agendas.yaml says."""
    return yaml.safe_load(Path(__file__).with_name("agendas.yaml").read_text(encoding="utf-8"))


def needed(lab: str, section: str) -> int:
    """Minutes of a section, or of the whole lab: as counted, with slack, rounded up. Raises KeyError: not counted."""
    sections = minutes.read(lab)["core"]["sections"]
    counted = sum(sections.values()) if section == WHOLE else sections[section]
    return ceil(round(counted * (1 + plan()["slack"]), 6))


def parts(name: str) -> Iterator[tuple[str, str, int]]:
    """An agenda as (clock time at which it begins, what, minutes), the last with 0 minutes at its end."""
    first, *rest = plan()["agendas"][name]
    now = datetime.strptime(first["start"], "%H:%M")
    for part in rest:
        if isinstance(part, dict):
            ((what, took),) = part.items()
        else:
            lab, _, section = part.partition(" ")
            title = load(lab).title
            what = f"Lab {lab}, {title}" if section == WHOLE else f"Lab {lab}: {section}"
            took = needed(lab, section)
        yield f"{now:%H:%M}", str(what), int(took)
        now += timedelta(minutes=int(took))
    yield f"{now:%H:%M}", "end", 0


def agendas() -> str:
    """docs/instructor/agendas.md."""
    lines = [
        "# Agendas",
        "",
        "Written by `make notebooks` from the counted minutes of the labs and `course/notebooks/agendas.yaml`; a lab"
        f" has {plan()['slack']:.0%} more than was counted. Nobody has timed them with a class yet.",
    ]
    for name in plan()["agendas"]:
        rows = list(parts(name))
        lines += ["", f"## {name}", "", "| from | what | minutes |", "|---|---|--:|"]
        lines += [f"| {clock} | {what} | {took or ''} |" for clock, what, took in rows]
        lines += ["", f"{sum(took for *_, took in rows)} minutes, with breaks."]
    told = plan()["sections"].items()
    lines += ["", "## In each section", "", "| section | say | checkpoint | cut first |", "|---|---|---|---|"]
    lines += [f"| {name} | {one['say']} | {one['checkpoint']} | {one['cut']} |" for name, one in told]
    first = list(parts("90 minutes, one lab"))
    by = {what.partition(": ")[2]: clock for (_, what, _), (clock, *_) in pairwise(first)}
    lines += ["", "Checkpoints of the 90 minutes, by the clock:", ""]
    lines += [f"- by {by[name]}: {one['checkpoint']}" for name, one in told if name in by]
    return "\n".join(lines) + "\n"


def wrong_answers() -> str:
    """docs/instructor/wrong-answers.md: of every exercise and its twin the wrong answers that the lab knows."""
    lines = ["# Wrong answers and their hints", "", "Written by `make notebooks` from the exercises."]
    lines[-1] += " `course class` counts wrong answers under these names."
    for number in available():
        lines += ["", f"## Lab {number}: {load(number).title}", *_of_lab(load(number))]
    return "\n".join(lines) + "\n"


def _of_lab(spec: LabSpec) -> Iterator[str]:
    for exercise in spec.exercises:
        yield from ("", f"**{exercise.title}** (`{exercise.id}`)", "")
        for mark, one in (("", exercise), ("twin: ", exercise.twin)):
            for mistake in one.mistakes if one is not None else ():
                yield f"- {mark}`{mistake.name}`: {' '.join(mistake.hint.split())}"
        if exercise.plain:
            yield f"- from the third wrong answer on: {' '.join(exercise.plain.split())}"
