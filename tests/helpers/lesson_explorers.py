"""Every explorer that the lessons define: functions in `__all__` of each `course.lessons.labNN.lab` that return one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

from course.explore import Explorer
from course.lessons import available


def makers() -> dict[str, Callable[[], Explorer]]:
    """Return the functions that make an explorer, by "lab07.one_long_prompt"."""
    found = {}
    for number in available():
        for name in (f"course.lessons.lab{number}.lab", f"course.lessons.lab{number}.explorers"):
            if find_spec(name):
                module = import_module(name)
                functions = {f"lab{number}.{maker}": getattr(module, maker) for maker in module.__all__}
                found |= {maker: function for maker, function in functions.items() if _makes_one(function)}
    return found


def _makes_one(function: Callable[..., Any]) -> bool:
    returned = signature(function).return_annotation
    return (returned if isinstance(returned, str) else returned.__name__).endswith("Explorer")


@cache
def explorer(name: str) -> Explorer:
    """Return an explorer, made once; it has no widgets until somebody shows it."""
    return makers()[name]()
