"""The names of a package that stand in its modules, and are fetched when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def at_hand(package: str, *modules: str) -> Callable[[str], Any]:
    """A `__getattr__` that fetches what these modules of the package list in `__all__`, at first use.

    What a lab asks is read without plotly and widgets, which its explorers need.
    """

    def fetched(name: str) -> Any:
        # Import the one module that has the name: the package's other modules may be importing it.
        own = name.startswith("_") or not name.isidentifier() or find_spec(f"{package}.{name}") is not None
        for module in () if own else modules:
            source = import_module(f"{package}.{module}")
            if name in source.__all__:
                return getattr(source, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return fetched
