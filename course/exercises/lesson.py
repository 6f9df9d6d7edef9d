"""A lesson: the package of one lab, with its questions, its facts and what its notebook shows, by name.

A lesson registers itself when it is imported; `Lab("04")` and `load("04")` find it here.

asks.yaml    what the lab asks (`asks.py` says how it is read)
facts.py     facts(): every number that a text shows, by name. claims(): sentences that must hold, each with whether it
             does. keys(): of a question's options which is true, or words of the right one. GIVEN: constants of the
             scenario that texts may name without a hole
facts.json   what facts() returned, written by `make notebooks`, read when the lab is opened
lab.py       explorers, tables, figures, by the names that the notebook calls
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.base.at_hand import at_hand
from course.base.settings import quote

if TYPE_CHECKING:
    from course.exercises.holes import Fact
    from course.exercises.spec import LabSpec

ASKS, FACTS = "asks.yaml", "facts.json"
DIGITS = 9
"""Of a stored fact: the last ones of a sum differ from one processor to the next."""


class Lesson:
    """One lab's package.

    package: its name, which ends with the lab's number: "course.lessons.lab04".
    """

    def __init__(self, package: str) -> None:
        self.package, self.number = package, package[-2:]

    @property
    def folder(self) -> Path:
        """Where the package's files are."""
        file = import_module(self.package).__file__
        assert file is not None
        return Path(file).parent

    @cached_property
    def facts(self) -> dict[str, Fact]:
        """The stored facts; none if the lesson stores none. Raises ValueError: a file that holds no facts."""
        return stored(self.folder / FACTS)

    @cached_property
    def spec(self) -> LabSpec:
        """What the lab asks. Raises asks.AsksError (a ValueError) for a fault of the file."""
        from course.exercises import asks

        if not (self.folder / ASKS).exists():
            return import_module(f"{self.package}.exercises").LAB
        return asks.read(self.folder / ASKS, self.number, self.facts, self.named)

    def named(self, name: str) -> Any:
        """Return what a name such as "refill.PROBES" means: a module of the package, and what is in it.

        Raises ValueError: no such module, or nothing in it by that name.
        """
        home, _, attribute = name.partition(".")
        package = f"{self.package}.{home}"
        if not home.isidentifier() or find_spec(package) is None:
            raise ValueError(f"{name!r}: the lesson has no {home}.py")
        module = import_module(package)
        if not attribute.isidentifier() or not hasattr(module, attribute):
            raise ValueError(f"{name!r}: {home}.py has no {attribute!r}")
        return getattr(module, attribute)

    def computed(self) -> dict[str, Fact]:
        """Run `facts()` of the lesson and return what is to be stored; {} if it has no facts.py.

        Raises ValueError: a fact that is no number and no text.
        """
        if find_spec(f"{self.package}.facts") is None:
            return {}
        return rounded(import_module(f"{self.package}.facts").facts())

    def forget(self) -> None:
        """Read questions and facts anew when they are next asked for."""
        self.__dict__.pop("spec", None)
        self.__dict__.pop("facts", None)


LESSONS: dict[str, Lesson] = {}
"""By number, as far as they have been imported."""


def lesson(package: str, *modules: str) -> Callable[[str], Any]:
    """Register the lab of a package, and return the package's `__getattr__`, which has `modules` at hand.

    modules: whose `__all__` names what a notebook calls.
    """
    LESSONS[package[-2:]] = Lesson(package)
    return at_hand(package, *modules)


def available() -> tuple[str, ...]:
    """Return the numbers of the labs that have been imported, in order; `import course.lessons` imports all."""
    return tuple(sorted(LESSONS))


def find(number: str | int) -> Lesson:
    """Return the lesson of a lab. Raises ValueError: there is no such lab."""
    short = isinstance(number, str) or (isinstance(number, int) and 0 <= number < 100)
    wanted = str(number).strip().zfill(2) if short else ""
    if wanted in LESSONS:
        return LESSONS[wanted]
    if not LESSONS and "course.lessons" not in sys.modules:
        raise ValueError(f"there is no lab {quote(number)} yet: import course.lessons first")
    raise ValueError(f"there is no lab {quote(number)}: choose from {', '.join(available()) or 'none yet'}")


def load(number: str | int) -> LabSpec:
    """Return what a lab asks. Raises ValueError: there is no such lab, or a fault in its questions."""
    return find(number).spec


def rounded(facts: Mapping[str, Any]) -> dict[str, Fact]:
    """Return facts as they are stored: ints, texts, and numbers of 9 digits. Raises ValueError: anything else."""
    found: dict[str, Fact] = {}
    for name, value in facts.items():
        value = value.item() if getattr(value, "ndim", None) == 0 else value  # of NumPy
        if isinstance(value, bool) or not isinstance(value, int | float | str) or value != value:
            raise ValueError(f"the fact {name!r} is {value!r}; give a number or a text")
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError(f"the fact {name!r} is {value!r}; give a finite number")
            value = float(f"{value:.{DIGITS}g}")
        found[name] = value
    return found


def stored(path: Path) -> dict[str, Fact]:
    """Return the facts in a file, {} if there is none. Raises ValueError: a file that holds something else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path.name} cannot be read ({error}); `make notebooks` writes it anew") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} holds no facts; `make notebooks` writes it anew")
    return rounded(found)


def as_stored(facts: Mapping[str, Fact]) -> bytes:
    """Return the content of facts.json."""
    return (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode()
