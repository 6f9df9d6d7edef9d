"""Lab 07: chunked prefill.

Its explorers, tables, figures and step times are at hand here: `from course.lessons import lab07`.
"""

from importlib import import_module
from typing import Any

SHOWN = ("explorers", "shown", "deeper")


def __getattr__(name: str) -> Any:
    """Fetched at first use: what a lab asks is read without plotly and widgets."""
    for module in SHOWN if not name.startswith("_") else ():
        found = import_module(f"course.lessons.lab07.{module}")
        if name in found.__all__:
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
