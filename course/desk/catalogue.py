"""What each lab asks, without loading it: number, title, minutes and ids, from catalogue.json.

`make notebooks` writes that file from the labs themselves (course/notebooks/catalogue.py). Loading a lab brings NumPy,
SciPy and its simulations; a list of the labs must not wait for them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("catalogue.json")
CORE = ("00", "01", "02", "04", "03", "08", "07", "16", "09", "10", "15", "18")
"""The order in which the labs are taken: each needs only what stands before it."""
PRIMER = CORE[0]
"""Comes before all: two parts instead of eight sections, and a test that lets those skip it who can."""
ELECTIVES = ("05", "06", "11", "12", "13", "14", "17")


@dataclass(frozen=True)
class Item:
    """A prediction, task, exercise or question, by its id."""

    id: str


@dataclass(frozen=True)
class Entry:
    """One lab, in the shape in which `standing.done_so_far` counts it.

    minutes: as counted, None before they are. deeper: of its deeper notebook, None if there is none.
    """

    number: str
    title: str
    minutes: int | None
    deeper: int | None = None
    predictions: tuple[Item, ...] = ()
    tasks: tuple[Item, ...] = ()
    exercises: tuple[Item, ...] = ()
    quiz: tuple[Item, ...] = ()


@cache
def catalogue() -> dict[str, Entry]:
    """The labs by number."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        number: Entry(
            number,
            lab["title"],
            lab["minutes"],
            lab.get("deeper"),
            **{part: tuple(Item(id) for id in ids) for part, ids in lab["asks"].items()},
        )
        for number, lab in stored.items()
    }


def in_order(numbers: set[str]) -> tuple[list[str], list[str]]:
    """The numbers of existing labs as the core path and the electives; one that neither names is an elective."""
    core = [number for number in CORE if number in numbers]
    return core, [number for number in ELECTIVES if number in numbers] + sorted(
        numbers.difference(CORE).difference(ELECTIVES)
    )
