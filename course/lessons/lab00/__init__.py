"""Lab 00: how a language model answers, and how to read a serving graph.

Its explorers are at hand here: `from course.lessons import lab00`.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Fetched at first use: what a lab asks is read without plotly and widgets."""
    explorers = import_module("course.lessons.lab00.explorers") if not name.startswith("_") else None
    if name not in getattr(explorers, "__all__", ()):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(explorers, name)
