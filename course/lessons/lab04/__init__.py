"""Lab 04: static, dynamic, continuous.

Its explorers, tables and figures are at hand here: `from course.lessons import lab04`.
"""

from importlib import import_module
from typing import Any

SHOWN = ("explorers", "shown", "further")


def __getattr__(name: str) -> Any:
    """Fetched at first use: what a lab asks is read without plotly and widgets."""
    for module in SHOWN if not name.startswith("_") else ():
        found = import_module(f"course.lessons.lab04.{module}")
        if name in found.__all__:
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
