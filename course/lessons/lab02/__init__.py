"""Lab 02: the memory wall, what a step reads and computes, and how many sequences share it before it grows.

Its explorers, tables and figures are at hand here: `from course.lessons import lab02`.
"""

from importlib import import_module
from typing import Any

SHOWN = ("explorers", "shown", "further")


def __getattr__(name: str) -> Any:
    """Fetched at first use: what a lab asks is read without plotly and widgets."""
    for module in SHOWN if not name.startswith("_") else ():
        found = import_module(f"course.lessons.lab02.{module}")
        if name in found.__all__:
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
