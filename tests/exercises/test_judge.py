"""Answers are judged, each in its own words: not attempted, right, a known mistake, or wrong as described."""

from __future__ import annotations

import math

import numpy as np
import pytest

from course.exercises import Exercise, LabSpec, Mistake, Prediction, Question
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge, overlaps
from course.lessons import load
from tests.helpers.toy_lab import TOY, Doubles, Forgets, drive

_, AREA, POLICY = TOY.exercises


# Not attempted


@pytest.mark.parametrize("exercise", TOY.exercises, ids=lambda e: e.id)
@pytest.mark.parametrize("blank", [None, ...])
def test_nothing_is_not_attempted(exercise, blank):
    assert judge(exercise, blank).status == NOT_ATTEMPTED


def unfinished(width, height):
    raise NotImplementedError


@pytest.mark.parametrize("stub", [lambda w, h: None, lambda w, h: ..., unfinished], ids=["None", "...", "error"])
def test_a_function_that_returns_nothing_is_not_attempted(stub):
    assert judge(AREA, stub).status == NOT_ATTEMPTED


def test_a_policy_that_schedules_nothing_is_not_attempted():
    class Stub:
        def schedule(self, state): ...

    class Inherits(Stub):
        pass

    class Unfinished:
        def schedule(self, state):
            raise NotImplementedError

    for policy in (Stub(), Inherits(), Unfinished()):
        assert judge(POLICY, policy).status == NOT_ATTEMPTED
    assert "schedule" in vars(Stub) and "schedule" not in vars(Inherits), "the learner's class is left as it was"
    assert Stub.schedule.__qualname__.endswith("Stub.schedule")


def test_a_function_given_to_evaluate_is_watched_too():
    exercise = Exercise(
        "f", "f", lambda n: n + 1, (Mistake(lambda n: n, "One is missing."),), evaluate=lambda f: f(1) + f(2)
    )
    assert judge(exercise, lambda n: None).status == NOT_ATTEMPTED
    assert judge(exercise, lambda n: n + 1).status == RIGHT
    assert judge(exercise, lambda n: n).hint == "One is missing."
    assert "too high" in judge(exercise, lambda n: 9).hint


# Right, and known mistakes


@pytest.mark.parametrize("exercise", TOY.exercises, ids=lambda e: e.id)
def test_solution_and_mistakes(exercise):
    assert judge(exercise, exercise.solution).status == RIGHT
    for position, mistake in enumerate(exercise.mistakes):
        verdict = judge(exercise, mistake.answer)
        assert (verdict.status, verdict.mistake, verdict.hint) == (WRONG, position, mistake.hint)


def test_another_road_to_the_same_result_is_right():
    assert judge(AREA, lambda w, h: sum([h] * w)).status == RIGHT
    assert judge(AREA, lambda w, h: np.float32(w * h)).status == RIGHT


def test_a_value_within_the_tolerance_is_right_even_close_to_a_mistake():
    exercise = Exercise("x", "x", 100.0, (Mistake(101.5, "close"), Mistake(50, "half")), rtol=0.01)
    assert judge(exercise, 100.9).status == RIGHT
    assert judge(exercise, 101.4).hint == "close"


def test_rtol_of_the_exercise_counts():
    exact = Exercise("n", "n", 7, (Mistake(8, "one off"), Mistake(6, "one less")), rtol=0)
    assert judge(exact, 7).status == RIGHT and judge(exact, 7.001).status == WRONG


def test_a_function_that_changes_its_arguments_is_told_so_and_harms_nobody():
    exercise = Exercise(
        "total", "total", sum, (Mistake(len, "counts"), Mistake(max, "largest")), probes=([[3, 1, 2]], [[5, 5]])
    )

    def total(values):
        result = 0
        while values:
            result += values.pop()
        return result

    exercise = Exercise("total", "total", sum, exercise.mistakes, probes=(([3, 1, 2],), ([5, 5],)))
    verdict = judge(exercise, total)
    assert verdict.status == WRONG and 'changes "values"' in verdict.hint and "work on a copy" in verdict.hint
    assert judge(exercise, lambda values: total(list(values))).status == RIGHT
    assert judge(exercise, sum).status == RIGHT
    assert exercise.probes == (([3, 1, 2],), ([5, 5],))


# Wrong in other ways


def test_the_first_differing_probe_is_shown_without_the_answer():
    def area(width, height):
        return width * height if width < 4 else 19

    verdict = judge(AREA, area)
    assert verdict.hint == "The result of area(4, 5) is 19, which is too low."
    assert "20" not in verdict.hint


def test_a_path_without_return_is_named():
    def area(width, height):
        if width < 4:
            return width * height

    assert "area(4, 5) is None: does every path" in judge(AREA, area).hint


def test_an_error_is_shown_with_its_line():
    def area(width, height):
        result = width * height
        return result / 0

    verdict = judge(AREA, area)
    line = area.__code__.co_firstlineno + 2
    assert verdict.status == WRONG
    assert "area(2, 3.5) stopped with ZeroDivisionError" in verdict.hint
    assert f"in line {line} of your cell: return result / 0" in verdict.hint
    assert "Traceback" not in verdict.hint and "/" not in verdict.hint.replace("result / 0", "")


def test_an_error_deep_in_a_library_points_at_the_learners_line():
    def area(width, height):
        return np.linalg.inv(np.zeros((2, 2)))

    assert f"in line {area.__code__.co_firstlineno + 1} of your cell: return np.linalg.inv" in judge(AREA, area).hint


def test_an_error_in_a_policy_points_at_the_learners_line():
    class Mine:
        def schedule(self, state):
            return state["nothing"]

    hint = judge(POLICY, Mine()).hint
    assert "TypeError" in hint and 'return state["nothing"]' in hint


@pytest.mark.parametrize(
    "answer",
    [lambda w, h: 1 / 0, lambda w: w, lambda: 1, lambda w, h: exit(), lambda w, h: (_ for _ in ()).throw(MemoryError)],
)
def test_no_error_of_the_learner_escapes(answer):
    assert judge(AREA, answer).status == WRONG


def test_endless_recursion_is_an_error_like_any_other():
    def area(width, height):
        return area(width, height)

    assert "RecursionError" in judge(AREA, area).hint


def test_an_interrupt_is_not_swallowed():
    def area(width, height):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(AREA, area)


def test_a_long_message_is_shortened():
    def area(width, height):
        raise RuntimeError("x" * 5_000)

    assert len(judge(AREA, area).hint) < 600


@pytest.mark.parametrize("answer", [7.0, "area", [1]])
def test_a_result_in_place_of_the_function(answer):
    assert "give the function itself" in judge(AREA, answer).hint


def test_a_class_in_place_of_an_object():
    assert judge(POLICY, Doubles).hint == "Your answer is the class Doubles: give an object of it, Doubles(...)."


def test_a_sentence_of_the_engine_is_passed_on():
    class Mine:
        def schedule(self, state):
            raise ValueError("slot 5 does not exist: there are 4.")

    hint = judge(POLICY, Mine()).hint
    assert "slot 5 does not exist: there are 4." in hint and ".." not in hint
    assert judge(POLICY, Mine()).mistake is None, "another ValueError than the one of the known mistake"


# What a lab's author gets wrong


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Exercise("x", "x", len), "asks for a function"),
        (lambda: Exercise("x", "x", len, probes=(([1],),), evaluate=len), "one of them"),
        (lambda: Exercise("x", "x", 3, probes=((1,),)), "a function as solution"),
        (lambda: Exercise("x", "x", len, probes=()), "at least one"),
        (lambda: Exercise("x", "x", 3, rtol=-1), "tolerance"),
        (lambda: Exercise("x", "x", 3, rtol=math.nan), "tolerance"),
        (lambda: Mistake(3, "  "), "no hint"),
        (lambda: Prediction("p", "?", ("a",), 0, "w"), "different options"),
        (lambda: Prediction("p", "?", ("a", "a"), 0, "w"), "different options"),
        (lambda: Prediction("p", "?", "ab", 0, "w"), "different options"),
        (lambda: Prediction("p", "?", ("yes", "no"), "c", "w"), "not an option"),
        (lambda: Prediction("p", "?", ("yes", "no"), 2, "w"), "not an option"),
        (lambda: Question("q", "?", ("yes", "no"), "a"), "pair"),
        (lambda: Question("q", "?", (("yes", "because"), ("no", "")), "a"), "pair"),
    ],
)
def test_mistakes_of_an_author_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def problem(*mistakes, solution=10.0, **more):
    return overlaps(Exercise("x", "x", solution, mistakes, **more))


def test_mistakes_that_cannot_be_told_apart_are_found():
    assert "within the tolerance of the solution" in problem(Mistake(10.05, "hint"))
    assert "mistakes 0 and 1 give the same result" in problem(Mistake(5, "one"), Mistake(5.01, "two"))
    assert "not attempted" in problem(Mistake(None, "one"))
    divides = problem(Mistake(lambda n: 1, "one"), solution=lambda n: n / 0, probes=((1,),))
    assert "the solution raises ZeroDivisionError" in divides
    twice = problem(Mistake(lambda n: 2 * n, "one"), solution=lambda n: n + n, probes=((1,),))
    assert "within the tolerance" in twice
    assert problem(Mistake(5, "one"), Mistake(6, "two")) is None


def test_the_same_holds_for_evaluate_when_a_test_asks():
    exercise = Exercise("x", "x", Doubles(), (Mistake(Doubles(), "same"),), evaluate=drive)
    assert "within the tolerance" in overlaps(exercise)
    assert overlaps(POLICY) is None
    assert overlaps(Exercise("x", "x", Forgets(), (), evaluate=lambda p: p.missing)) is not None


@pytest.mark.parametrize("part", ["predictions", "exercises", "quiz"])
def test_ids_are_unique(part):
    with pytest.raises(ValueError, match="give each its own id"):
        LabSpec("97", "t", 1, **{part: getattr(TOY, part)[:1] * 2})


def test_an_unknown_lab_names_the_known_ones():
    with pytest.raises(ValueError, match=r"there is no lab '77': choose from"):
        load("77")
