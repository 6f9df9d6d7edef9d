"""Values are compared with a reference: equal in kind and value, and where not, described without giving it away."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from course.exercises.compare import difference, near, same
from course.exercises.judge import RIGHT, WRONG, judge
from tests.helpers.toy_lab import TOY

LITTLE = TOY.exercises[0]


@pytest.mark.parametrize(
    "got",
    [
        12,
        12.0,
        12.11,
        11.89,
        np.float64(12),
        np.float32(12),
        np.int64(12),
        np.array(12.0),
        Fraction(12),
        Decimal("12.05"),
    ],
)
def test_any_real_number_within_the_tolerance_is_right(got):
    assert judge(LITTLE, got).status == RIGHT


@pytest.mark.parametrize(
    ("got", "says"),
    [
        (12.2, "too high"),
        (11.8, "too low"),
        (-12, "too low"),
        (0, "too low"),
        (10**400, "infinite"),
        (math.inf, "infinite"),
        (-math.inf, "infinite"),
        (math.nan, "NaN"),
        (np.nan, "NaN"),
        ("12", "without quotes"),
        ("twelve", "without quotes"),
        (True, "not True or False"),
        (np.True_, "not True or False"),
        (12 + 0j, "complex"),
        ([12.0], "one number"),
        ((12.0,), "one number"),
        (np.array([12.0]), "one number"),
        ({"answer": 12}, "give a number"),
        (object(), "give a number"),
        (lambda: 12, "call it"),
        (min, "call it"),
    ],
)
def test_wrong_numbers_are_described(got, says):
    verdict = judge(LITTLE, got)
    assert verdict.status == WRONG and verdict.mistake is None
    assert says in verdict.hint
    # The hint of the exercise follows, unless the fault is one of form alone.
    assert verdict.hint.endswith("Write down the units.") == (says != "without quotes")


@pytest.mark.parametrize(
    ("got", "want"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ((1, 2), [1, 2]),
        (np.array([1.0, 2.0]), (1, 2)),
        ([1, 2], np.array([1, 2])),
        (range(3), [0, 1, 2]),
        (np.eye(2), [[1, 0], [0, 1]]),
        ([], []),
        ({"a": 1.001, "b": [2]}, {"b": [2], "a": 1}),
        ({1, 2}, {2, 1}),
        (" Little ", "little"),
        (np.bool_(True), True),
        (math.nan, math.nan),
        ([1.0, math.nan], [1.0, math.nan]),
        (math.inf, math.inf),
        (None, None),
        (1e-12, 0),
        (0.0, 0),
        (10**400, math.inf),
    ],
)
def test_equal_in_kind_and_value(got, want):
    assert same(got, want, 0.01)


@pytest.mark.parametrize(
    ("got", "want", "says"),
    [
        ([1, 2], [1, 2, 3], "has 2 elements where 3"),
        ([1, 9, 3], [1, 2, 3], "x[1] is 9, which is too high"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 5]], "x[1][1] is 4, which is too low"),
        (5, [5], "give a list or an array of 1"),
        (np.array(5), [5], "give a list or an array of 1"),
        ("abc", ["a", "b", "c"], "give a list"),
        ((v for v in [1]), [1], "generator"),
        ({"a": 1}, [1], "give a list"),
        ({"a": 1}, {"a": 1, "b": 2}, "has no key 'b'"),
        ({"a": 1, "b": 2}, {"a": 1}, "'b' that is not expected"),
        ({"a": 3}, {"a": 1}, "x['a'] is 3, which is too high"),
        ([1], {"a": 1}, "dictionary"),
        ([1], {1}, "give a set"),
        ({3}, {1}, "right elements"),
        (1, True, "give True or False"),
        (False, True, "not right"),
        (3, "text", "in quotes"),
        ("other", "text", "not right"),
        (1.0, math.nan, "not right"),
        (1e-3, 0, "too high"),
        (0, None, "not right"),
    ],
)
def test_differences_are_described_without_the_reference(got, want, says):
    found = difference(got, want, 0.01, "x")
    assert found is not None and says in found


def test_objects_that_cannot_be_compared_or_shown_do_no_harm():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("no")

        __hash__ = None

        def __repr__(self):
            raise RuntimeError("no")

    assert "cannot be compared" in difference(Odd(), object(), 0.01)
    assert "a Odd" in difference(Odd(), 1.0, 0.01)


def test_long_values_are_shortened():
    assert len(difference("x" * 10_000, 1.0, 0.01)) < 150


@pytest.mark.parametrize(
    ("value", "right"),
    [(0.08, True), (0.079, True), (0.0788, True), (0.07, False), (0.09, False), (0.083, False), (0.077, False)],
)
def test_what_is_rounded_as_the_text_rounds_is_right(value, right):
    """0.0788 dollars, where the text shows 0.15: 0.08 is off by 1.5%, more than 1% of tolerance."""
    assert near(value, 0.0788, 0.01, shown=0.01) is right
    assert same([value], [0.0788], 0.01, shown=0.01) is right
    assert same({"a": value}, {"a": 0.0788}, 0.01, shown=0.01) is right


def test_half_a_unit_is_the_most():
    for value in (2.5, 3.5):
        assert near(3.0, value, 0.0, shown=1.0)
    assert not near(3.0, 2.49, 0.0, shown=1.0) and not near(3.0, 3.51, 0.0, shown=1.0)
    assert not near(3.0, 3.1, 0.0), "without a digit shown nothing is rounded"


def test_no_sentence_has_more_digits_than_the_answer():
    for value in (2.84, 0.1, 1 / 4, 1e-9, 123_456, 7.5e22):
        said = judge(LITTLE, value).hint
        digits = max(
            len(re.sub(r"e.*|\D", "", number).strip("0")) for number in re.findall(r"[\d.]+(?:e[+-]?\d+)?", said)
        )
        assert digits <= len(f"{value:.6g}".split("e")[0].replace(".", "").strip("0")), said
