"""Nobody learns the right answers from their place or their length; `tests/helpers/answer_keys.py` has the rule."""

from __future__ import annotations

import re

import pytest

from course.exercises import Prediction, Question, holes
from course.exercises.lesson import find
from course.lessons import available, load
from tests.helpers.answer_keys import at_place, bounds, chances, longest, shortest
from tests.helpers.places import ROOT

FILLING = "a an and are as at be by does do for has have how in is it its no not of on or than that the to with"
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


def taken_away(number: str) -> list[str]:
    """The sentences under "Take away" of a lab, with their numbers; none in the primer, which has no such part."""
    (path,) = ROOT.glob(f"solutions/{number}_*.py")
    _, found, rest = path.read_text(encoding="utf-8").partition("# ## Take away\n")
    words = " ".join(line.lstrip("# ") for line in rest.partition("\n# %%")[0].splitlines())
    return re.split(r"(?<=[.:;])\s+", holes.filled(words, find(number).facts)) if found else []


def words_of(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]+|\d[\d,.]*", text.lower()) if word not in FILLING.split()}


def share_said(option: str, sentences: list[str]) -> float:
    """The largest share of the words of an option that one sentence has."""
    words = words_of(option)
    return max((len(words & words_of(sentence)) / max(len(words), 1) for sentence in sentences), default=0.0)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_no_quiz_repeats_the_take_away(lab):
    """Six in ten words of the right option in one sentence, and fewer of each wrong one, and the question asks to
    find the sentence again."""
    sentences = taken_away(lab.number)
    for question in lab.quiz:
        shares = [share_said(option, sentences) for option in question.options]
        right = shares.pop(question.right)
        assert right < 0.6 or right <= max(shares), (question.id, right, shares)


def test_the_rule_notices_a_quiz_that_repeats():
    assert share_said("with answers of equal length", ["It gains nothing if answers have an equal length."]) == 1.0
    assert share_said("with answers of equal length", ["Watch each request."]) == 0.0


def test_the_rule_notices_a_key_that_leaks():
    """27 questions of three options: the right one always last, or always longest, is beyond chance."""
    plain = [Question(f"q{i}", "?", (("one", "no"), ("two", "no"), ("six", "yes")), "c") for i in range(27)]
    wordy = [Question(f"q{i}", "?", (("one", "no"), ("two", "no"), ("six of them", "yes")), "c") for i in range(27)]
    low, high = bounds(chances(plain, 2))
    assert (low, high) == (4, 14)
    assert at_place(plain, 2) == 27 and at_place(plain, 0) == 0 < low
    assert longest(wordy) == 27 and longest(plain) == 0 == shortest(plain)
