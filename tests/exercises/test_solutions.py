"""Three wrong answers: hint, plainer hint, solution, and a twin with other numbers that must be solved to count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.exercises import Exercise, Lab, Mistake
from course.exercises.progress import Progress
from course.exercises.solutions import IS_SHOWN, text_of
from tests.helpers.toy_lab import TOY, Doubles

PLAIN = "Multiply the rate by the time."
TWIN = Exercise("little", "Little's law", 30.0, (Mistake(30_000, "Milliseconds and seconds are mixed."),),
                plain="Again a rate times a time.", question="10 requests/s stay 3 s. How many are there?")  # fmt: skip
LITTLE = replace(TOY.exercises[0], plain=PLAIN, twin=TWIN, worked="4 requests/s x 3 s = 12")
SPEC = replace(TOY, exercises=(LITTLE, *TOY.exercises[1:]))


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(SPEC, Progress(tmp_path), show=False)


def entry(lab: Lab) -> dict:
    return lab.progress.lab("98")["exercises"]["little"]


def miss(lab: Lab, times: int) -> list[str]:
    """Answer wrongly and return the text of each card."""
    return [lab.check("little", 5 + i).text() for i in range(times)]


def test_the_third_wrong_answer_brings_the_plainer_hint_and_not_before(lab):
    first, second, third = miss(lab, 3)
    assert PLAIN not in first + second
    assert f"More plainly: {PLAIN}" in third and 'lab.solution("little") shows the solution.' in third
    assert "too low" in third, "what is wrong is still said"


def test_blank_answers_are_no_wrong_ones(lab):
    for _ in range(5):
        lab.check("little", None)
    assert PLAIN not in miss(lab, 1)[0]


@pytest.mark.parametrize(("misses", "left"), [(0, "3 more wrong answers"), (2, "1 more wrong answer.")])
def test_the_solution_is_closed_until_then(lab, misses, left):
    miss(lab, misses)
    text = lab.solution("little").text()
    assert "closed" in text and left in text and "= 12" not in text


def test_the_solution_and_then_the_twin(lab):
    miss(lab, 3)
    shown = lab.solution("little").text()
    assert "4 requests/s x 3 s = 12" in shown and TWIN.question in shown
    assert lab.check("little", 12).status == "not right yet", "what was shown is not the answer to the twin"
    assert lab.check("little", 30_000).lines[0] == "Milliseconds and seconds are mixed."
    assert entry(lab)["done"] is False and entry(lab)["shown"] is True
    right = lab.check("little", 30)
    assert right.heading == "Exercise 1 of 3, Little's law, with other numbers: right."
    assert entry(lab)["done"] is True


def test_the_twin_is_asked_again_after_a_restart(lab):
    miss(lab, 3)
    lab.solution("little")
    later = Lab(SPEC, Progress(lab.progress.path.parent), show=False)
    assert TWIN.question in later.check("little", None).text()
    assert "More plainly: Again a rate times a time." in later.check("little", 1).text()
    assert later.check("little", 30).status == "right"


def test_what_solved_the_twin_is_right_when_the_lab_is_opened_again(lab):
    miss(lab, 3)
    lab.solution("little")
    lab.check("little", 30)
    later = Lab(SPEC, Progress(lab.progress.path.parent), show=False)
    assert later.check("little", 30).heading == "Exercise 1 of 3, Little's law, with other numbers: right."
    assert later.check("little", 12).heading == "Exercise 1 of 3, Little's law: right."
    assert later.check("little", 29).heading == "Exercise 1 of 3, Little's law: not right yet."


def test_who_has_not_solved_the_twin_is_not_told_that_its_answer_is_right(lab):
    lab.check("little", 12)
    assert lab.check("little", 30).status == "not right yet"


def test_without_a_twin_it_ends_as_shown(lab):
    for _ in range(3):
        lab.check("area", lambda width, height: width)
    assert "width * height" in lab.solution("area").text() and IS_SHOWN in lab.solution("area").text()
    assert IS_SHOWN in lab.check("area", lambda width, height: width * height).text()
    assert "1 of 3 exercises" not in repr(lab) and "Next: exercise area" not in repr(lab)


def test_whoever_solved_it_may_read_the_solution_and_stays_done(lab):
    lab.check("little", 12)
    assert "4 requests/s x 3 s = 12" in lab.solution("little").text()
    assert TWIN.question not in lab.solution("little").text()
    assert entry(lab)["done"] is True and "shown" not in entry(lab)
    assert lab.check("little", 12).status == "right"


def test_an_unknown_exercise_names_the_known_ones(lab):
    assert "Its exercises are: little, area, policy." in lab.solution("nothing").text()


def test_the_text_of_a_solution():
    assert text_of(replace(LITTLE, worked="")) == "12"
    assert "schedule" in text_of(TOY.exercises[2]) or "Doubles" in text_of(TOY.exercises[2])
    assert text_of(Exercise("p", "p", Doubles(), evaluate=id))
    assert "\n" in text_of(Exercise("f", "f", text_of, probes=((1,),))), "a function's source keeps its lines"


def test_a_twin_of_a_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="twin needs a question"):
        replace(LITTLE, twin=replace(TWIN, question=""))
    with pytest.raises(ValueError, match="and no twin"):
        replace(LITTLE, twin=LITTLE)


@pytest.mark.parametrize("stored", [7, [], {"tries": "x"}, {"tries": True, "shown": 1, "done": "yes"}, {"tries": -3}])
def test_an_entry_of_another_shape_counts_as_nothing(lab, stored):
    lab.progress.change("98", "exercises", "little", lambda _: stored)
    assert "closed" in lab.solution("little").text()
    assert lab.check("little", 12).status == "right" and entry(lab)["done"] is True
