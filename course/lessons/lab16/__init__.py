"""Lab 16: measuring honestly.

Its explorers, tables and figures are at hand here: `from course.lessons import lab16`.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

SHOWN = ("explorers", "shown", "over_http")


def __getattr__(name: str) -> Any:
    """Fetched at first use: what a lab asks is read without plotly and widgets."""
    module_of_its_own = not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None
    for module in () if name.startswith("_") or module_of_its_own else SHOWN:
        found = import_module(f"course.lessons.lab16.{module}")
        if name in found.__all__:
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
