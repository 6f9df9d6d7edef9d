"""Lab 06: where a task of an explorer is done, and where it is not, beside the setting that it shows."""

import pytest

from course.exercises.judge import judge
from course.lessons import load
from course.lessons.lab06 import decision, two_orders
from course.lessons.lab06.two_orders import BUDGET, FIRST, MIXED, RATE, SLOTS

FIRST_EXPLORER = {"order": FIRST, "max_num_batched_tokens": BUDGET}
SECOND = {"rule": MIXED, "rate": RATE, "max_num_seqs": SLOTS}
CASES = [
    ("short", {"order": MIXED, "max_num_batched_tokens": 2_048}, True),
    ("short", {"order": MIXED}, False),  # the order alone
    ("short", {"max_num_batched_tokens": 2_048}, False),  # the budget alone
    ("short", {"order": MIXED, "max_num_batched_tokens": 1_024}, False),  # first tokens come too late
    ("share", {"rule": "1/4"}, True),
    ("share", {"rule": "1/2"}, False),
    ("share", {"rule": "1/8"}, False),
    ("share", {"rule": "every 4th step"}, False),
    ("share", {"rule": "1/4", "rate": 8}, False),  # not at the start's rate
]


def task(name):
    return next(one for one in load("06").tasks if one.id == name)


@pytest.mark.parametrize(("name", "changed", "done"), CASES)
def test_where_a_task_is_done(name, changed, done):
    if name == "short":
        settings = FIRST_EXPLORER | changed
        result = two_orders.who_goes_first(*settings.values())
    else:
        settings = SECOND | changed
        result = two_orders.a_share_for_prompts(*settings.values())
    assert task(name).reached(settings, result) == done


@pytest.mark.parametrize(("changed", "here"), [({}, True), ({"rate": 12}, False), ({"max_num_seqs": 64}, False)])
def test_a_value_is_read_where_it_is_asked_for(changed, here):
    settings = SECOND | {"rule": "every 4th step"} | changed
    assert task("turn").where(settings, None) == here


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({decision.VLLM: 2_048, decision.CHUNK: 2_048}, "choose one flag"),
        ({"--max-model-len": 2_048}, "none of the flags of the question"),
        ({decision.VLLM: 100}, "a whole number, 256 or more"),
        (2_048, "give a dictionary"),
    ],
)
def test_a_decision_that_cannot_be_judged_says_why(answer, words):
    exercise = next(one for one in load("06").exercises if one.id == "decision")
    assert words in judge(exercise, answer).hint
