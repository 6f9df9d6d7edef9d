"""The seam of a lab that ends in a design: what of a learner's progress is the design, and what the design is worth.

A lesson takes part with a module `capstone` of its own, `course/lessons/labNN/capstone.py`:

    design_of(parts) -> a mapping of plain JSON values, or None   # parts: what is stored of the lab, as `Progress.lab`
    score(design) -> {name: number}                               # ValueError with a sentence for what is no design

A class is shown what `score` makes of each design, never a score that somebody has written into a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from course.exercises.lesson import available, find


def module_of(number: str) -> Any:
    """The module `capstone` of a lesson; None if there is no such lesson, or it ends in no design."""
    if number not in available():
        return None
    name = f"{find(number).package}.capstone"
    return import_module(name) if find_spec(name) else None


def design_of(number: str, parts: Mapping[str, Any]) -> Any:
    """The design in what is stored of a lab; None if there is none."""
    module = module_of(number)
    return None if module is None else module.design_of(parts)


def score(number: str, design: Any) -> dict[str, float]:
    """What a design is worth, by the names of the lab's own figures of merit.

    Raises ValueError: the lab ends in no design, or this is none of it.
    """
    module = module_of(number)
    if module is None:
        raise ValueError(f"lab {number} ends in no design")
    if not isinstance(design, Mapping):
        raise ValueError(f"the design of lab {number} is no table of settings")
    return {name: float(value) for name, value in module.score(design).items()}
