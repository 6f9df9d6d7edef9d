"""CPU seconds of what the sliders of labs 13, 15 and 17 start: the slowest settings of each explorer.

    PYTHONPATH=. .venv/bin/python tests/bench/sliders.py          # or with the numbers of other labs

Every control is moved from end to end, the others at their start; and all go to their start and ends together. A run
has nothing remembered from the one before. Live ones, where the language model speaks, load it once and are printed
too. Exit status 1 where a simulation takes longer than LONGEST.
"""

import importlib
import inspect
import itertools
import pkgutil
import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from course.explore import Choice, Explorer, Slider

LONGEST = 0.3  # CPU seconds of a run
MOST = 24  # values of a slider


def values(control: Slider | Choice) -> list[Any]:
    """From end to end."""
    if isinstance(control, Choice):
        return [value for _, value in control.options]
    found, value = [], control.low
    while value <= control.high + 1e-9:
        found.append(value)
        value = value * control.step if control.log else round(value + control.step, 9)
    return found if len(found) <= MOST else [*found[:: len(found) // MOST], found[-1]]


def settings(explorer: Explorer) -> Iterator[dict[str, Any]]:
    """Each control alone, then all at their start and ends."""
    start = {control.name: control.default for control in explorer.controls}
    each = {control.name: values(control) for control in explorer.controls}
    for name, moved in each.items():
        for value in moved:
            yield start | {name: value}
    few = [[moved[0], start[name], moved[-1]] if len(moved) > 6 else moved for name, moved in each.items()]
    for together in itertools.product(*few):
        yield dict(zip(each, together, strict=True))


def forget(modules: list[ModuleType]) -> None:
    """What the lesson remembers of its runs."""
    for value in itertools.chain.from_iterable(vars(module).values() for module in modules):
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def slowest(number: str) -> Iterator[tuple[str, bool, float, dict[str, Any]]]:
    """(explorer, whether it is live, CPU seconds, settings) of each explorer of a lab, at its slowest."""
    lesson = importlib.import_module(f"course.lessons.lab{number}")
    names = [module.name for module in pkgutil.iter_modules(lesson.__path__)]
    modules = [importlib.import_module(f"{lesson.__name__}.{name}") for name in names]
    for name in lesson.lab.__all__:
        shown = getattr(lesson.lab, name)
        made = None if inspect.signature(shown).parameters else shown()
        if not isinstance(made, Explorer):
            continue
        made.simulate(**made.defaults)  # what is loaded once
        found = []
        for chosen in settings(made):
            forget(modules)
            before = time.process_time()
            made.simulate(**chosen)
            found.append((time.process_time() - before, chosen))
        seconds, chosen = max(found, key=lambda one: one[0])
        yield name, "measured" in str(made.badge), seconds, chosen


if __name__ == "__main__":
    missed = False
    for number in sys.argv[1:] or ("13", "15", "17"):
        for name, live, seconds, chosen in slowest(number):
            print(f"lab{number}.{name:<22} {seconds:6.3f} s {'live' if live else '    '} {chosen}", flush=True)
            missed |= not live and seconds > LONGEST
    sys.exit(missed)
