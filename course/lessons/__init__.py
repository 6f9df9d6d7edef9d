"""One folder a lab: what it asks (`asks.yaml`), its facts, its scenarios and what its notebook shows.

Each registers itself here when it is imported (`course.exercises.lesson`). A lesson never imports another lesson: what
two of them need is in `course.figures` or `course.workload`.
"""

from importlib import import_module
from pkgutil import iter_modules

from course.exercises.lesson import available, find, load

__all__ = ["available", "find", "load"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
