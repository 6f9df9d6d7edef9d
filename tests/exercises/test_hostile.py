"""Answers that fight back: judging one never raises, and leaves the learner's classes as they were."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from course.exercises import Lab, printing
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.exercises.progress import Progress
from course.lessons import load
from tests.helpers.toy_lab import TOY

LITTLE, AREA, POLICY = TOY.exercises


class Unspeakable(Exception):
    """An error that cannot say what it is."""

    def __str__(self):
        raise RuntimeError("not even this")

    __repr__ = __str__


class NotAnException(BaseException):
    pass


def raises(error):
    def answer(*_arguments):
        raise error

    return answer


ERRORS = [
    Unspeakable(),
    NotAnException("out of line"),
    GeneratorExit(),
    SystemExit(Unspeakable()),
    ValueError("\ud800"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_error_gets_out(error):
    verdict = judge(AREA, raises(error))
    assert verdict.status == WRONG and f"stopped with {type(error).__name__}" in verdict.hint
    policy = type("Mine", (), {"schedule": raises(error)})()
    assert type(error).__name__ in judge(POLICY, policy).hint


def test_an_error_that_cannot_be_shown_is_still_placed():
    def area(width, height):
        raise Unspeakable

    hint = judge(AREA, area).hint
    assert "Unspeakable: (its message cannot be shown)" in hint and "raise Unspeakable" in hint


def refusing(*names):
    """An object that raises at each of these."""

    def refuse(self, *_arguments):
        raise Unspeakable

    return type("Refusing", (), {name: refuse for name in names})()


class RefusingFloat(float):
    def __float__(self):
        raise Unspeakable

    __repr__ = __sub__ = __float__


class Endless:
    def __len__(self):
        return 3

    def __iter__(self):
        while True:
            yield 1


class Nameless(type):
    @property
    def __name__(cls):
        raise Unspeakable

    def __repr__(cls):
        raise Unspeakable


def tangled() -> list:
    inside: list = []
    inside.append(inside)
    return inside


HOSTILE = [
    refusing("__repr__", "__str__"),
    refusing("__eq__"),
    refusing("__len__", "__iter__"),
    refusing("__getattr__", "__call__"),
    RefusingFloat(12),
    Endless(),
    Nameless("C", (), {}),
    Nameless("C", (), {})(),
    tangled(),
    10**5_000,
    np.array([refusing("__eq__")]),
    np.ma.masked,
    object,
    sys,
    refusing("__class__"),  # the last one: nobody passes it as an id
]


@pytest.mark.parametrize("position", range(len(HOSTILE)))
@pytest.mark.parametrize("exercise", TOY.exercises, ids=lambda exercise: exercise.id)
def test_no_object_gets_through_or_breaks_the_lab(exercise, position, tmp_path):
    card = Lab(TOY, Progress(tmp_path), show=False).check(exercise.id, HOSTILE[position])
    assert card.status in (WRONG, NOT_ATTEMPTED) and card.html()


@pytest.mark.parametrize("position", range(len(HOSTILE) - 1))
def test_no_object_is_an_id(position, tmp_path):
    lab, odd = Lab(TOY, Progress(tmp_path), show=False), HOSTILE[position]
    for card in (lab.check(odd, 1), lab.recap(odd), lab.predict(odd)):
        assert card.heading.startswith("There is no ")
    assert "is not an option" in lab.predict("p99", odd).text() and "is not an option" in lab.quiz(q1=odd).text()
    with pytest.raises(ValueError, match="there is no lab"):
        load(odd)


# The class of an answer is watched while it runs, and then as it was


class Base:
    def schedule(self, state):
        return [2 * value for value in state]


class Inherits(Base):
    pass


class Static:
    @staticmethod
    def schedule(state):
        return [2 * value for value in state]


class ByClass:
    @classmethod
    def schedule(cls, state):
        return [2 * value for value in state]


class Frozen(type):
    def __setattr__(cls, name, value):
        raise AttributeError(f"{cls.__name__} is closed")


class Closed(metaclass=Frozen):
    def schedule(self, state):
        return [2 * value for value in state]


@pytest.mark.parametrize("cls", [Base, Inherits, Static, ByClass, Closed])
def test_a_class_is_left_as_it_was(cls):
    before = {one: dict(vars(one)) for one in cls.__mro__}
    assert judge(POLICY, cls()).status == RIGHT
    for one, names in before.items():
        assert vars(one).keys() == names.keys() and all(vars(one)[name] is names[name] for name in names)
    assert cls().schedule([1]) == [2], "a static method is still one"


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_a_static_schedule_that_returns_nothing_is_not_attempted(kind):
    stub = type("Stub", (), {"schedule": kind(lambda *_arguments: None)})
    assert judge(POLICY, stub()).status == NOT_ATTEMPTED
    assert isinstance(vars(stub)["schedule"], kind)


def test_a_class_is_left_as_it_was_after_an_interrupt():
    cls = type("Mine", (), {"schedule": staticmethod(raises(KeyboardInterrupt()))})
    own = vars(cls)["schedule"]
    with pytest.raises(KeyboardInterrupt):
        judge(POLICY, cls())
    assert vars(cls)["schedule"] is own


def test_an_answer_that_prints_without_end_is_cut_once_for_all_its_runs(capsys):
    def area(*arguments):
        print("x" * 30_000)
        sys.stderr.write("z" * 30_000)
        return AREA.solution(*arguments)

    assert AREA.probes and len(AREA.probes) > 1
    assert judge(AREA, area).status == RIGHT
    out, err = capsys.readouterr()
    for text, letter, newlines in ((out, "x", len(AREA.probes)), (err, "z", 0)):
        assert text.count(letter) == printing.MOST
        left = 30_000 * len(AREA.probes) + newlines - printing.MOST
        assert text.endswith(f"\n... and {left:,} more characters that your answer printed.\n")


def test_what_an_answer_prints_is_shown_and_the_streams_are_given_back(capsys):
    def area(*arguments):
        print("here", flush=True)
        print("there", file=sys.stderr)
        raise ValueError

    before = sys.stdout, sys.stderr
    judge(AREA, area)
    assert (sys.stdout, sys.stderr) == before
    out, err = capsys.readouterr()
    assert out == "here\n" * len(AREA.probes) and err == "there\n" * len(AREA.probes)
