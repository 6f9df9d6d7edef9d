"""What stands in for the parts of vLLM that its scheduler imports or asks for, and does not use without a model."""

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType, SimpleNamespace
from typing import Any


class Settings(SimpleNamespace):
    """A configuration of which only what the scheduler uses is given. Everything else it reads as None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class Nothing:
    """Takes any call, has any attribute, and does nothing."""

    def __init__(self, *given: Any, **named: Any): ...

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Return what was given, as a decorator does, or another of these."""
        decorates = len(given) == 1 and callable(given[0]) and not named
        return given[0] if decorates else Nothing()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class Empty(ModuleType):
    """A module in which every name is a class that does nothing."""

    __version__ = "0.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (Nothing,), {})
        setattr(self, name, made)
        return made


class EmptyModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages of these names, as empty modules."""

    def __init__(self, *names: str):
        self.names = names

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The spec of a package that stands in, None for all others."""
        known = name.partition(".")[0] in self.names
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """An empty module."""
        made = Empty(spec.name)
        made.__path__ = []
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


def install() -> None:
    """Stand in for the grammars of structured output, which are imported with the scheduler and larger than it."""
    sys.meta_path.append(EmptyModules("xgrammar", "llguidance"))
