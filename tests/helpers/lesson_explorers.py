"""Every explorer that the lessons define: the functions in `__all__` of each `course.lessons.labNN.explorers`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from course.exercises import available
from course.explore import Explorer


def makers() -> dict[str, Callable[[], Explorer]]:
    """Return the functions that make an explorer, by "lab07.one_long_prompt"."""
    found = {}
    for number in available():
        name = f"course.lessons.lab{number}.explorers"
        if find_spec(name):
            module = import_module(name)
            found |= {f"lab{number}.{maker}": getattr(module, maker) for maker in module.__all__}
    return found


@cache
def explorer(name: str) -> Explorer:
    """Return an explorer, made once; it has no widgets until somebody shows it."""
    return makers()[name]()
