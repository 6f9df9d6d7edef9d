"""Lab 01: the first token, where the time before it goes, and what means and percentiles say of it.

Its explorers, tables and figures are at hand here: `from course.lessons import lab01`.
"""

from importlib import import_module
from typing import Any

SHOWN = ("explorers", "shown", "further")


def __getattr__(name: str) -> Any:
    """Fetched at first use: what a lab asks is read without plotly and widgets."""
    for module in SHOWN if not name.startswith("_") else ():
        found = import_module(f"course.lessons.lab01.{module}")
        if name in found.__all__:
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
