"""The facts of every lab are what its runs give, its claims hold, its keys are true, and no text has a number typed in.

A lab that is not moved to asks.yaml yet is left out.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from course.exercises.curve import Drawing
from course.exercises.lesson import ASKS, Lesson
from course.exercises.spec import LETTERS
from course.lessons import available, find
from tests.helpers import digits
from tests.helpers.places import SOLUTIONS

LESSONS = {number: find(number) for number in available() if (find(number).folder / ASKS).exists()}
TOY = Lesson("tests.data.lab97")
LESSONS[TOY.number] = TOY
each_lab = pytest.mark.parametrize("number", LESSONS, scope="module")
"""One lab's tests after the other's: what a lab remembers is forgotten behind its last."""
MOST_GIVEN = 15
"""Constants of a scenario that its texts may name without a hole."""


def module(lesson: Lesson) -> ModuleType:
    return import_module(f"{lesson.package}.facts")


def sources(number: str) -> list[Path]:
    folder = TOY.folder.parent if number == TOY.number else SOLUTIONS
    return sorted(folder.glob(f"{number}*_*.py"))


@each_lab
def test_the_stored_facts_are_what_the_runs_give(number: str) -> None:
    lesson = LESSONS[number]
    fresh = lesson.computed()
    assert list(fresh) == list(lesson.facts), "run `make notebooks`"
    for name, value in fresh.items():
        # Stored with nine digits; the last ones of a sum differ from one processor to the next.
        same = value if isinstance(value, str) else pytest.approx(value, rel=1e-7)
        assert lesson.facts[name] == same, f"{name}: run `make notebooks`"


@each_lab
def test_the_claims_hold(number: str) -> None:
    claims = module(LESSONS[number]).claims()
    assert claims and [claim for claim, holds in claims.items() if not holds] == []


@each_lab
def test_the_keys_are_true(number: str) -> None:
    """Of each question one option is true, as the runs say, and it is the right one."""
    spec = LESSONS[number].spec
    asked = {item.id: item for item in (*spec.predictions, *spec.questions) if not isinstance(item, Drawing)}
    keys = module(LESSONS[number]).keys()
    assert set(keys) == set(asked), "each question has a key, and each key a question"
    for id, key in keys.items():
        options = asked[id].options
        true = [place for place, text in enumerate(options) if key in text] if isinstance(key, str) else [
            place for place, holds in enumerate(key) if holds]  # fmt: skip
        assert isinstance(key, str) or len(key) == len(options), id
        assert true == [asked[id].right], f"{id}: the key says {LETTERS[asked[id].right]}, true are {true}"


@each_lab
def test_no_number_is_typed_in(number: str) -> None:
    """But for a few constants of the scenario, in its own words."""
    given = {float(value) for value in getattr(module(LESSONS[number]), "GIVEN", ())}
    assert len(given) <= MOST_GIVEN
    texts = [*digits.of_asks(LESSONS[number]), *(text for path in sources(number) for text in digits.of_notebook(path))]
    found = [(value, text) for text in texts for value in digits.typed(text)]
    typed = [text for value, text in found if value not in given | digits.NAMES_NOTHING]
    assert not typed, f"make them holes of facts(), or constants in GIVEN: {typed}"
    unused = given - {value for value, _ in found}
    assert not unused, f"no text names {sorted(unused)}"


@each_lab
def test_every_fact_is_used(number: str) -> None:
    lesson = LESSONS[number]
    assert set(lesson.facts) - digits.asked_for(lesson, sources(number)) == set()
