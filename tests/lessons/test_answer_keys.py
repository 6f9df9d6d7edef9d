"""Nobody learns the right answers from their place or their length; `tests/helpers/answer_keys.py` has the rule."""

from __future__ import annotations

import pytest

from course.exercises import Prediction, Question
from course.lessons import available, load
from tests.helpers.answer_keys import at_place, bounds, chances, longest, shortest

LABS = [load(number) for number in available()]
KINDS = {
    "quiz": [question for lab in LABS for question in lab.questions],
    "predictions": [p for lab in LABS for p in lab.predictions if isinstance(p, Prediction)],
}
KINDS["both"] = KINDS["quiz"] + KINDS["predictions"]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_right_answers_are_spread_over_the_places(kind, place):
    asked = KINDS[kind]
    low, high = bounds(chances(asked, place))
    assert low <= at_place(asked, place) <= high


@pytest.mark.parametrize("count", [longest, shortest])
@pytest.mark.parametrize("kind", KINDS)
def test_length_does_not_tell_the_right_answer(kind, count):
    asked = KINDS[kind]
    _, high = bounds(chances(asked))
    found = count(asked)
    assert found <= high, f"the right option is the {count.__name__} in {found} of {len(asked)} questions"


@pytest.mark.parametrize("kind", KINDS)
def test_right_answers_are_no_longer_than_the_others_on_average(kind):
    ratios = []
    for question in KINDS[kind]:
        lengths = [len(option) for option in question.options]
        right = lengths.pop(question.right)
        ratios.append(right / (sum(lengths) / len(lengths)))
    assert sum(ratios) / len(ratios) <= 1.1  # one in ten: a long option here and there, but no habit


def test_the_rule_notices_a_key_that_leaks():
    """27 questions of three options: the right one always last, or always longest, is beyond chance."""
    plain = [Question(f"q{i}", "?", (("one", "no"), ("two", "no"), ("six", "yes")), "c") for i in range(27)]
    wordy = [Question(f"q{i}", "?", (("one", "no"), ("two", "no"), ("six of them", "yes")), "c") for i in range(27)]
    low, high = bounds(chances(plain, 2))
    assert (low, high) == (4, 14)
    assert at_place(plain, 2) == 27 and at_place(plain, 0) == 0 < low
    assert longest(wordy) == 27 and longest(plain) == 0 == shortest(plain)
