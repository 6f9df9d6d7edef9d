"""Lab 07: chunked prefill.

Its explorers, tables, figures and step times are at hand here: `from course.lessons import lab07`.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

SHOWN = ("explorers", "shown", "deeper")


def __getattr__(name: str) -> Any:
    """Fetched at first use: what a lab asks is read without plotly and widgets."""
    own = name.startswith("_") or find_spec(f"{__name__}.{name}") is not None  # a module here
    for module in SHOWN if not own else ():
        found = import_module(f"course.lessons.lab07.{module}")
        if name in found.__all__:
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
