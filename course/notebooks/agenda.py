"""Pages for whoever teaches: agendas with clock times from counted minutes, and every wrong answer with its hint."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import yaml

from course.exercises import minutes
from course.exercises.spec import LabSpec
from course.lessons import available, load
from course.notebooks.source import HEADINGS

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


def checkpoints(name: str) -> Iterator[tuple[int, str, str, str]]:
    """Of an agenda (minute, clock time, lab and section, what everybody has by then), in order."""
    first, *rest = plan()["agendas"][name]
    begun, minute, told = datetime.strptime(first["start"], "%H:%M"), 0, plan()["sections"]
    for part in rest:
        if isinstance(part, dict):
            minute += int(*part.values())
            continue
        lab, _, section = part.partition(" ")
        counted = minutes.read(lab)["core"]["sections"]
        for one, until in _ends(counted, plan()["halts"]) if section == WHOLE else [(section, needed(lab, section))]:
            at = minute + until
            yield at, f"{begun + timedelta(minutes=at):%H:%M}", f"Lab {lab}: {one}", told[one]["checkpoint"]
        minute += needed(lab, section)


def _ends(counted: dict[str, float], wanted: list[str]) -> Iterator[tuple[str, int]]:
    """Sections of a whole lab and the minute of the lab at which each ends, with slack, rounded up."""
    so_far = 0.0
    for section in (one for one in HEADINGS if one in counted):
        so_far += counted[section]
        if section in wanted:
            yield section, ceil(round(so_far * (1 + plan()["slack"]), 6))


def _cuts(name: str) -> Iterator[str]:
    saved = 0
    for place, part in enumerate(plan()["cuts"][name], 1):
        lab, _, section = part.partition(" ")
        saved += needed(lab, section)
        yield f"{place}. Lab {lab}: {section}, {needed(lab, section)} minutes ({saved} so far)"


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
        lines += ["", f"{sum(took for *_, took in rows)} minutes, with breaks.", "", "Checkpoints:", ""]
        lines += [f"- by minute {at} ({clock}), {where}: {said}" for at, clock, where, said in checkpoints(name)]
        lines += ["", "Where you are later than that, cut in this order:", "", *_cuts(name)]
    told = plan()["sections"].items()
    lines += ["", "## In each section", "", "| section | say | checkpoint | cut first |", "|---|---|---|---|"]
    lines += [f"| {name} | {one['say']} | {one['checkpoint']} | {one['cut']} |" for name, one in told]
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
