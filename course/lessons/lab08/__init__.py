"""Lab 08: KV budgeting.

Its explorers are at hand here, and what else its notebook shows in one line: `from course.lessons import lab08`.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Fetched at first use: what a lab asks is read without plotly and widgets."""
    for module in ("explorers", "shown"):
        found = import_module(f"course.lessons.lab08.{module}") if not name.startswith("_") else None
        if name in getattr(found, "__all__", ()):
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
