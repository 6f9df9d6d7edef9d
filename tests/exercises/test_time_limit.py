"""A learner's code ends: what never returns is stopped, wherever it loops and whatever it catches."""

from __future__ import annotations

import sys
import threading

import pytest

from course.exercises import time_limit
from course.exercises.judge import RIGHT, WRONG, judge
from course.exercises.learner import tried
from course.exercises.time_limit import OutOfTime, TimeLimit
from course.lessons import lab04, lab07, load
from tests.helpers.toy_lab import TOY

_, AREA, POLICY = TOY.exercises
STEPS = 10**9
"""Of a loop that no test lives to see the end of, and that ends where the limit does not work: the test then fails."""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(time_limit, "SECONDS", 0.1)


def nothing():
    pass


def loop(*_):
    for _ in range(STEPS):
        pass


def in_a_generator(*_):
    return sum(1 for _ in range(STEPS))


def in_a_comprehension(*_):
    return len([0 for _ in range(STEPS) if _ < 0])


def catches_all(*_):
    try:
        for _ in range(STEPS):
            pass
    except BaseException:
        return 12


def catches_all_again_and_again(*_):
    for _ in range(STEPS):
        try:
            for _ in range(1_000):
                nothing()
        except BaseException:
            pass


def catches_each(*_):
    for _ in range(STEPS):
        try:
            nothing()
        except BaseException:
            continue


def returns_in_finally(*_):
    for _ in range(STEPS):
        try:
            nothing()
        finally:
            continue  # noqa: B012


def calls(*_):
    for _ in range(STEPS):
        nothing()


def returns_what_never_ends(*_):
    return (i for i in range(STEPS) if i < 0)


class Slow(float):
    def __float__(self):
        loop()


FOREVER = [
    loop, in_a_generator, in_a_comprehension, catches_all, catches_all_again_and_again, catches_each,
    returns_in_finally, calls,
]  # fmt: skip


@pytest.mark.parametrize("answer", FOREVER, ids=lambda f: f.__name__)
def test_a_function_that_never_returns_is_stopped(answer):
    before = threading.active_count(), sys.gettrace()
    verdict = judge(AREA, answer)
    assert verdict.status == WRONG
    assert verdict.hint.startswith("Your code computed for 0.1 s without an end and was stopped")
    assert sys.gettrace() is before[1]
    assert judge(AREA, AREA.solution).status == RIGHT, "nothing is left over for the next answer"


@pytest.mark.parametrize("answer", FOREVER, ids=lambda f: f.__name__)
def test_so_is_a_policy(answer):
    policy = type("Mine", (), {"schedule": answer})()
    assert "was stopped" in judge(POLICY, policy).hint
    assert judge(POLICY, POLICY.solution).status == RIGHT


def test_so_is_an_object_that_is_compared():
    assert "was stopped" in judge(AREA, lambda width, height: Slow(1)).hint
    assert "was stopped" in judge(TOY.exercises[0], Slow(1)).hint


def test_the_line_is_named():
    source = "def area(width, height):\n    while True:\n        width += 1\n"
    cell: dict = {}
    exec(compile(source, "<ipython-input-1>", "exec"), cell)
    hint = judge(AREA, cell["area"]).hint
    assert "in line 2 of your cell" in hint or "in line 3 of your cell" in hint


@pytest.mark.parametrize("lab", [lab04, lab07], ids=["04", "07"])
@pytest.mark.parametrize("answer", [loop, catches_each], ids=lambda f: f.__name__)
def test_so_is_an_answer_at_work(lab, answer):
    assert "was stopped" in lab.at_work(answer).text()


@pytest.mark.parametrize("number", ["04", "07", "08"])
def test_so_are_the_functions_of_the_labs(number):
    exercise = next(e for e in load(number).exercises if e.probes is not None)
    assert "was stopped" in judge(exercise, loop).hint


def test_all_calls_of_an_answer_share_the_time():
    limit = TimeLimit(0.3)
    with pytest.raises(OutOfTime):
        for _ in range(1_000):
            limit.run(lambda: sum(range(10**5)))
    assert limit.used >= 0.3


def test_what_ends_in_time_is_not_touched():
    assert TimeLimit().run(max, 1, 2) == 2
    for error in (ValueError("its own"), KeyboardInterrupt(), SystemExit(1)):
        with pytest.raises(type(error)):
            TimeLimit().run(raises, error)
    assert tried(nothing, nothing) == (None, "")


def raises(error):
    raise error


def test_the_limit_is_there_without_a_test(monkeypatch):
    monkeypatch.undo()
    assert TimeLimit().seconds == 5.0
