"""Tasks without widgets: one open at a time, judged once, answered from the result, kept as done or as shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from course.base import answers
from course.exercises import TaskRecord
from course.exercises.progress import Progress
from course.explore.tasks import DONE, SHOWN, Find, Memory, Task, Way, Why, check_tasks, in_words
from tests.helpers.toy_tasks import FIND, READ, TASKS, WHY, explorer, simulate


def at(**settings: int) -> tuple[dict[str, int], dict[str, float]]:
    """Settings and the result there."""
    settings = {"rate": 20, "slots": 32} | settings
    return settings, simulate(**settings)


def where(task: Task) -> tuple[Any, Any]:
    return at(**task.settings)


def way(*tasks: Task, record: Any = None) -> Way:
    return Way(tasks or TASKS, record or Memory(), where)


# One at a time


def test_the_first_is_open_and_nobody_gets_past_it():
    here = way()
    assert here.task is FIND and here.open and here.said == ""
    here.go(1)
    assert here.task is FIND
    here.go(-1)
    assert here.task is FIND


def test_only_the_task_looked_at_is_judged():
    here = way()
    here.typed("30", *at(rate=30))
    here.chosen(WHY.position)
    assert here.states == {} and here.misses == 0 and here.said == ""
    here = way(READ, WHY)
    assert not here.rested(*at(rate=36)) and here.misses == 0
    here.chosen(WHY.position)
    assert here.states == {}


def test_one_after_the_other_and_back():
    here = way()
    assert here.rested(*at(rate=36)) and here.states == {"full": DONE}
    assert here.said == "The load is 90%." and here.right and not here.open
    assert here.task is FIND, "the answer stays until the learner goes on"
    here.go(1)
    assert here.task is READ and here.said == "" and not here.right
    here.go(-1)
    assert here.said == "The load is 90%." and here.right
    here.go(1)
    here.typed("30", *at(rate=30))
    here.go(1)
    here.chosen(1)
    assert here.states == {"full": DONE, "wait": DONE, "why": DONE}
    here.go(1)
    assert here.task is WHY, "there is nothing behind the last one"


def test_what_is_done_is_judged_no_more():
    here = way()
    here.rested(*at(rate=36))
    assert not here.rested(*at(rate=1)) and here.misses == 0 and here.said == "The load is 90%."
    here.shown(*at(rate=36))
    assert here.states == {"full": DONE}


# Finding


def test_a_miss_says_what_is_here_and_the_answer_has_the_numbers_of_the_result():
    here = way()
    assert not here.rested(*at(rate=10))
    assert here.said == "The load is 25% here." and not here.right and here.misses == 1
    here.rested(*at(rate=40))
    assert here.said == "The load is 100%."


def test_a_brace_that_no_fact_fills_is_named():
    with pytest.raises(ValueError, match=r"task 'full': its facts have no 'lod', .* there are load"):
        replace(FIND, answer="{lod}").said(*at())
    here = way(replace(FIND, miss="{lod}"))
    with pytest.raises(ValueError, match="no 'lod'"):
        here.rested(*at(rate=10))


def test_a_miss_without_a_sentence():
    here = way(replace(FIND, miss=""))
    here.rested(*at())
    assert here.said == "Not here yet."


# Saying why


def test_a_reason_that_is_wrong_gets_its_own_hint():
    here = way(WHY)
    here.chosen(0)
    assert here.said == "Look at the rate." and here.misses == 1
    here.chosen(2)
    assert here.said == "Nobody leaves here." and here.open
    here.chosen(1)
    assert here.said == "The load is only 25%.", "with the numbers where it is shown, not where the controls stand"


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"options": (("It rains.", ""),)}, "two or more different options"),
        ({"options": (("Few come.", "no"), ("Few come.", "no"))}, "two or more different options"),
        ({"options": (("It rains.", ""), ("Few come.", ""))}, "'It rains.' is wrong and has no hint"),
        ({"right": "d"}, "'d' is not an option: choose one of abc"),
        ({"right": ""}, "'' is not an option"),
        ({"right": "ab"}, "'ab' is not an option"),
    ],
)
def test_reasons_that_make_no_sense_are_refused(parts, says):
    given = {"id": "w", "text": "Why?", "show": {}, "answer": "So.", "options": WHY.options, "right": "b"}
    with pytest.raises(ValueError, match=says):
        Why(**given | parts)


@pytest.mark.parametrize(
    ("tasks", "says"), [((FIND, FIND), "two tasks are called 'full'"), (("full",), "'full' is not a task")]
)
def test_lists_that_make_no_sense_are_refused(tasks, says):
    with pytest.raises(ValueError, match=says):
        check_tasks(tasks)


# Show me


def test_show_me_is_offered_after_two_misses_and_not_before():
    here = way()
    for offered in (False, True, True):
        here.rested(*at())
        assert here.helps == offered
    here.rested(*at(rate=36))
    assert not here.helps


def test_misses_are_counted_for_each_task():
    here = way(WHY, FIND)
    here.chosen(0), here.chosen(0)
    here.shown(*where(WHY))
    here.go(1)
    assert here.misses == 0 and not here.helps


def test_shown_is_not_done():
    record = Memory()
    here = way(record=record)
    here.rested(*at()), here.rested(*at())
    here.shown(*where(FIND))
    assert here.states == {"full": SHOWN} == record.states() and here.said == "The load is 90%."
    assert not here.rested(*at(rate=36)) and here.states == {"full": SHOWN}, "it is closed"
    here.go(1)
    assert here.task is READ


# Kept


@pytest.fixture(params=["memory", "progress"])
def record(request, tmp_path):
    return Memory() if request.param == "memory" else TaskRecord("03", Progress(tmp_path))


def test_both_are_kept_and_a_new_display_goes_on_with_the_first_open_one(record):
    here = way(record=record)
    here.shown(*where(FIND))
    here.go(1)
    here.typed("30", *at(rate=30))
    again = way(record=record)
    assert again.states == {"full": SHOWN, "wait": DONE} and again.task is WHY and again.open
    again.chosen(1)
    last = way(record=record)
    assert last.task is WHY and not last.open and last.said == "The load is only 25%."


def test_a_task_that_was_done_stays_done_when_it_is_shown_in_another_display(record):
    one, other = way(record=record), way(record=record)
    one.rested(*at(rate=36))
    other.shown(*where(FIND))
    assert record.states() == {"full": DONE}
    assert way(record=record).states == {"full": DONE}


def test_a_shown_task_that_is_done_later_counts_as_done(record):
    one, other = way(record=record), way(record=record)
    one.shown(*where(FIND))
    other.rested(*at(rate=36))
    assert record.states() == {"full": DONE}


def test_states_of_others_and_odd_ones_are_left_out():
    class Odd(Memory):
        def states(self) -> dict[str, Any]:
            return {"full": "half", "wait": None, "elsewhere": DONE, "why": ["done"]}

    assert way(record=Odd()).states == {}


def test_an_answer_that_cannot_be_shown_again_leaves_the_task_done():
    record = Memory()
    record.keep("full", DONE)

    def fails(_task: Task) -> Any:
        raise ZeroDivisionError("division by zero")

    here = Way((FIND,), record, fails)
    assert here.states == {"full": DONE} and not here.open and not here.right
    assert "ZeroDivisionError" in here.said


# As text


def test_the_text_has_every_task_with_its_answer_where_answers_are_wanted(monkeypatch):
    monkeypatch.setenv(answers.VARIABLE, "1")
    assert in_words(TASKS, where) == [
        "Task 1. Find a setting with a load of 90% or more.",
        "  Answer: The load is 90%.",
        "Task 2. With 30 requests/s, how long is the wait?",
        "  Answer: At a load of 75%.",
        "Task 3. Why?",
        "  a) It rains.",
        "  b) Few come.",
        "  c) Many leave.",
        "  Answer: b) The load is only 25%.",
    ]
    assert explorer().text().splitlines()[-9:] == in_words(TASKS, where)


def test_the_text_that_a_copy_keeps_has_no_answer_and_computes_none():
    def never(_task: Task) -> Any:
        raise AssertionError("nothing is to be computed")

    assert in_words(TASKS, never) == [
        "Task 1. Find a setting with a load of 90% or more.",
        "Task 2. With 30 requests/s, how long is the wait?",
        "Task 3. Why?",
        "  a) It rains.",
        "  b) Few come.",
        "  c) Many leave.",
    ]


def test_a_setting_to_be_shown_may_be_searched_for(monkeypatch):
    monkeypatch.setenv(answers.VARIABLE, "1")
    searched = replace(FIND, show=lambda: {"rate": 37})
    assert in_words((searched,), where)[-1] == "  Answer: The load is 92%."
    assert isinstance(searched, Find) and explorer((searched,)).settings_of(searched) == {"rate": 37, "slots": 32}


def test_a_task_cannot_be_shown_between_two_stops():
    between = replace(FIND, show={"rate": 36, "slots": 3})
    with pytest.raises(ValueError, match="slots = 3 is between two stops"):
        explorer((between,)).settings_of(between)
