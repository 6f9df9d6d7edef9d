"""Lab 03: Little's law.

What its notebook shows is at hand here: `from course.lessons import lab03`.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Fetched at first use: what a lab asks is read without plotly and widgets."""
    for part in () if name.startswith("_") else ("explorers", "shown"):
        module = import_module(f"course.lessons.lab03.{part}")
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
