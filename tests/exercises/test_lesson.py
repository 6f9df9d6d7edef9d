"""Lessons by number, names in their modules, facts as they are stored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from course.exercises.lesson import Lesson, as_stored, rounded, stored
from course.exercises.task_record import tasks_of
from course.lessons import available, find, load
from course.lessons.lab04 import refill
from course.notebooks import facts


def test_a_lesson_registers_when_it_is_imported() -> None:
    code = (
        "from course.exercises import Lab, available, load\n"
        "assert available() == ()\n"
        "try:\n    load('04')\nexcept ValueError as error:\n    print(error)\n"
        "from course.lessons import lab04\n"
        "print(Lab('04', show=False).spec.title, '04' in available())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "there is no lab '04' yet: import course.lessons first",
        "Static, dynamic, continuous True",
    ]


@pytest.mark.parametrize("number", ["99", 99, -1, None, "four"])
def test_an_unknown_lab(number: object) -> None:
    with pytest.raises(ValueError, match=r"there is no lab .*: choose from 00, 01"):
        load(number)


def test_a_name_in_a_lesson() -> None:
    assert find("4").named("refill.PROBES") is refill.PROBES and "04" in available()


@pytest.mark.parametrize(
    "name",
    ["refil.PROBES", "refill.PROBE", "refill", "refill.", "refill.refill()", "..lab03.quiz", "refill.__doc__.x"],
)
def test_a_name_that_is_not_there(name: str) -> None:
    with pytest.raises(ValueError, match=r"has no|the lesson"):
        find("04").named(name)


def test_facts_are_stored_with_nine_digits() -> None:
    found = rounded({"a": np.float64(1 / 3), "b": np.int64(3), "c": 131_072, "d": "20 to 30%", "e": 2.0})
    assert found == {"a": 0.333333333, "b": 3, "c": 131_072, "d": "20 to 30%", "e": 2.0}
    assert [type(value) for value in found.values()] == [float, int, int, str, float]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, None, [1], np.array([1.0, 2.0]), 1j])
def test_what_is_no_fact(value: object) -> None:
    with pytest.raises(ValueError, match="the fact 'x' is "):
        rounded({"x": value})


def test_stored_facts(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    assert stored(path) == {}
    path.write_bytes(as_stored({"gain": 3.85, "said": "ä"}))
    assert stored(path) == {"gain": 3.85, "said": "ä"}
    for broken in ("{", "[1]", '{"x": [1]}'):
        path.write_text(broken)
        with pytest.raises(ValueError):
            stored(path)


def test_a_build_stores_facts_and_a_check_names_those_that_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "course" / "lessons" / "lab04" / "facts.json"
    home.parent.mkdir(parents=True)
    fresh = {"gain": 3.85, "slots": 32}
    monkeypatch.setattr(Lesson, "computed", lambda self: fresh)
    assert facts.refresh(tmp_path, ["04", "98"], write=False) == [
        "lab04/facts.json: not what facts() returns: gain, slots; run `make notebooks`"
    ]
    assert facts.under(tmp_path, "04") == {} and not home.exists()
    assert facts.refresh(tmp_path, ["04"], write=True) == [] and facts.under(tmp_path, "04") == fresh
    assert facts.refresh(tmp_path, ["04"], write=False) == []

    def breaks(self: Lesson) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Lesson, "computed", breaks)
    assert facts.refresh(tmp_path, ["04"], write=True) == ["lab04/facts.py: ZeroDivisionError: division by zero"]


def test_an_explorer_without_tasks_is_named() -> None:
    with pytest.raises(ValueError, match=r"lab 04 has no tasks for an explorer 'one_trac'; .* names one_trace, "):
        tasks_of("04", "one_trac")
