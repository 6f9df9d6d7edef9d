"""Slips that every exercise knows: units, a reciprocal, per token for per request, a number typed in."""

from __future__ import annotations

import pytest

from course.exercises import Exercise, Mistake, slips
from course.exercises.judge import RIGHT, WRONG, judge

TIME = Exercise("t", "a time", 0.25, slips=(slips.per_token(200), slips.all_slots(32)), hint="Start from the rate.")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (4.0, "reciprocal"),
        (250, "milliseconds"),
        (0.00025, "thousandth"),
        (25, "percentage"),
        (0.25 / 200, "for one token"),
        (0.25 * 32, "for all the slots together"),
    ],
)
def test_a_value_with_a_slip(answer, says):
    verdict = judge(TIME, answer)
    assert verdict.status == WRONG and says in verdict.hint
    assert "0.25" not in verdict.hint and "Start from the rate" not in verdict.hint


def test_what_is_right_or_wrong_otherwise_is_judged_as_ever():
    assert judge(TIME, 0.25).status == RIGHT
    assert "too high" in judge(TIME, 0.7).hint and "Start from the rate." in judge(TIME, 0.7).hint


def test_a_mistake_of_the_exercise_comes_first():
    own = Exercise("t", "t", 0.25, (Mistake(4.0, "That is a rate."),))
    assert judge(own, 4.0).hint == "That is a rate."


def test_a_slip_that_the_tolerance_hides_is_none():
    """With an answer of 1 the reciprocal is the answer."""
    assert judge(Exercise("x", "x", 1.0), 1.0).status == RIGHT
    assert "reciprocal" not in judge(Exercise("x", "x", 0.96, rtol=0.1), 1.1).hint
    assert judge(Exercise("x", "x", 0), 5).status == WRONG


def rate(tokens, seconds):
    return tokens / seconds


RATE = Exercise("r", "a rate", rate, probes=((200, 4.0), (300, 4.0), (300, 2.0)))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda tokens, seconds: seconds / tokens, "reciprocal"),
        (lambda tokens, seconds: tokens / seconds * 1e3, "a thousand times"),
        (lambda tokens, seconds: tokens / 4.0, 'does not change with "seconds"'),
        (lambda tokens, seconds: 200 / seconds, 'does not change with "tokens"'),
        (lambda tokens, seconds: 50, 'does not change with "tokens"'),
        (lambda *given: 200 / given[1], 'does not change with "given"'),
    ],
)
def test_a_function_with_a_slip(answer, says):
    assert says in judge(RATE, answer).hint


def test_a_slip_must_explain_every_result():
    half = lambda tokens, seconds: seconds / tokens if tokens == 200 else 7.5  # noqa: E731
    assert "reciprocal" not in judge(RATE, half).hint


def test_lists_and_dictionaries_of_numbers_too():
    several = Exercise("l", "l", [0.5, 0.25], rtol=1e-3)
    assert "milliseconds" in judge(several, [500, 250]).hint
    assert "milliseconds" not in judge(several, [500, 0.25]).hint
    assert "milliseconds" in judge(Exercise("d", "d", {"a": 0.5, "b": 2.0}), {"a": 500, "b": 2_000}).hint


def test_what_raises_or_is_no_number_gets_no_slip():
    assert slips.found(["a"], [1.0], 0.01) == "" == slips.found([float("nan")], [1.0], 0.01)
    assert slips.typed_in(lambda a: [][0], lambda a: a, ((1,), (2,))) == ""
    assert slips.typed_in(lambda a: 3, lambda a: a, ((1,),)) == "", "with one probe nobody can tell"
    probes = ((1, 10), (2, 10), (20, 3))
    assert slips.typed_in(max, lambda a, b: a + b, probes) == "", "the largest is another in the last one"
    assert '"b"' in slips.typed_in(lambda a, b: a + 10, lambda a, b: a + b, probes)


def test_both_ways_between_a_token_and_a_request():
    assert slips.per_token(200).of(100.0) == 0.5 and slips.per_request(200).of(0.5) == 100
    assert slips.per_slot(4).of(8.0) == 2 and slips.all_slots(4).of(2.0) == 8
    assert slips.RECIPROCAL.of(0.0) == float("inf")


@pytest.mark.parametrize(
    ("answer", "unit"),
    [
        (1_210, "a thousand times too large"),
        (1.21e-3, "a thousand times too small"),
        (1.21e6, "a million times too large"),
    ],
)
def test_a_slip_of_units_and_a_mistake_together_are_both_named(answer, unit):
    gap_more = Exercise("t", "t", 1.2, (Mistake(1.21, "Between which tokens are gaps?"),), rtol=2e-3)
    hint = judge(gap_more, answer).hint
    assert hint.startswith("Two things.") and unit in hint and hint.endswith("Between which tokens are gaps?")
    assert "Two things" not in judge(gap_more, 1.21).hint and "Two things" not in judge(gap_more, 1_200).hint


def test_so_they_are_in_a_function():
    one_more = Exercise(
        "r", "r", rate, (Mistake(lambda n, s: (n + 1) / s, "One too many."),), probes=RATE.probes, rtol=1e-3
    )
    hint = judge(one_more, lambda tokens, seconds: 1e3 * (tokens + 1) / seconds).hint
    assert "a thousand times too large" in hint and hint.endswith("One too many.")
