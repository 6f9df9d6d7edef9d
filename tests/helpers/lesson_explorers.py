"""Every explorer that the lessons define: functions in `__all__` of each `course.lessons.labNN.lab` that return one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

from course.explore import Explorer
from course.explore.board_view import Match
from course.explore.table import Table
from course.lessons import available


def makers() -> dict[str, Callable[[], Explorer]]:
    """Return the functions that make an explorer, by "lab07.one_long_prompt"."""
    return {
        f"lab{number}.{name}": function
        for number in available()
        for name, function in _shown(number).items()
        if _returned(function).endswith("Explorer")
    }


def tables(number: str) -> list[Callable[[], Table]]:
    """Return the functions of a lab that make a table and need nothing for it."""
    return [
        function
        for function in _shown(number).values()
        if _returned(function) == "Table" and not signature(function).parameters
    ]


def boards() -> dict[str, Callable[[], Match]]:
    """Return the functions that make a board to be played, by "lab07.hand_out_tokens"."""
    return {
        f"lab{number}.{name}": function
        for number in available()
        for name, function in _shown(number).items()
        if _returned(function) == "Match" and not signature(function).parameters
    }


def _shown(number: str) -> dict[str, Callable[..., Any]]:
    """What the notebooks of a lab call by name."""
    found: dict[str, Callable[..., Any]] = {}
    for name in ("lab", "explorers", "shown", "further"):
        if find_spec(f"course.lessons.lab{number}.{name}"):
            module = import_module(f"course.lessons.lab{number}.{name}")
            found |= {shown: getattr(module, shown) for shown in getattr(module, "__all__", ())}
    return found


def _returned(function: Callable[..., Any]) -> str:
    returned = signature(function).return_annotation
    return returned if isinstance(returned, str) else getattr(returned, "__name__", "")


@cache
def explorer(name: str) -> Explorer:
    """Return an explorer, made once; it has no widgets until somebody shows it."""
    return makers()[name]()
