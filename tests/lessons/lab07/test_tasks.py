"""Lab 07: where a task of an explorer is done, and where it is not, beside the setting that it shows."""

from types import SimpleNamespace

import numpy as np
import pytest

from course.lessons import load
from course.lessons.lab07 import long_prompt, tasks
from course.lessons.lab07.long_prompt import CLASS, MEET, WHOLE

MOMENT = {"max_num_batched_tokens": WHOLE, "long_prefill_token_threshold": 0, "at_once": 1, "crowd": 0}
HIDDEN = {"max_num_batched_tokens": WHOLE, "long_prefill_token_threshold": 0, "every": 20, "limit_ms": 100}


def task(name):
    return next(one for one in load("07").tasks if one.id == name)


def moment(**changed):
    settings = MOMENT | changed
    return settings, long_prompt.moment(*settings.values())


def hidden(**changed):
    settings = HIDDEN | changed
    return settings, long_prompt.hidden(*settings.values())


@pytest.mark.parametrize(
    ("changed", "done"),
    [
        ({"max_num_batched_tokens": 512}, True),
        ({}, False),
        ({"max_num_batched_tokens": 512, "long_prefill_token_threshold": 256}, False),  # not the budget alone
        ({"max_num_batched_tokens": 512, "at_once": 2}, False),  # not the question
        ({"max_num_batched_tokens": 512, "crowd": CLASS}, False),
    ],
)
def test_the_budget_alone_keeps_the_longest_prompt_from_stopping_the_chats(changed, done):
    settings, result = moment(**changed)
    assert task("budget").reached(settings, result) == task("newcomer").where(settings, result) == done


@pytest.mark.parametrize(
    ("changed", "done"),
    [
        ({"max_num_batched_tokens": 4_096, "long_prefill_token_threshold": 512}, True),
        ({"max_num_batched_tokens": 2_048, "long_prefill_token_threshold": 256}, True),
        ({"max_num_batched_tokens": 2_048, "long_prefill_token_threshold": 512, "at_once": 1}, False),
        ({"max_num_batched_tokens": 2_048, "long_prefill_token_threshold": 512, "crowd": 0}, False),
        ({"max_num_batched_tokens": 512}, False),  # the budget alone
        ({"long_prefill_token_threshold": 256}, False),  # the cap alone: the class is in one step
    ],
)
def test_budget_and_cap_are_both_needed_when_all_come_at_once(changed, done):
    assert task("both").reached(*moment(**({"at_once": MEET, "crowd": CLASS} | changed))) == done


@pytest.mark.parametrize("last", [tasks.FIRST, 1.2 * tasks.FIRST])
def test_all_who_come_later_must_be_in_time_and_not_the_first_alone(last):
    ttft = np.array([0.01, 1.0, 0.5 * tasks.FIRST, 0.5 * tasks.FIRST, last])  # a chat, a long prompt, those who come
    result = SimpleNamespace(run=SimpleNamespace(ttft=ttft), later=slice(2, None), longest_gap=(0.0, tasks.GAP))
    assert task("both").reached(MOMENT | {"at_once": MEET, "crowd": CLASS}, result) == (last <= tasks.FIRST)


@pytest.mark.parametrize(
    ("changed", "done"),
    [
        ({"every": 2}, True),
        ({"every": 3}, True),
        ({"every": 5}, False),
        ({}, False),
        ({"every": 2, "max_num_batched_tokens": 8_192}, False),
        ({"max_num_batched_tokens": 512}, False),  # doubles it too, but another control has moved
    ],
)
def test_only_long_prompts_that_come_more_often_count(changed, done):
    assert task("often").reached(*hidden(**changed)) == done


@pytest.mark.parametrize(
    ("changed", "done"),
    [
        ({"max_num_batched_tokens": 512}, True),
        ({"max_num_batched_tokens": 8_192}, False),
        ({"max_num_batched_tokens": 512, "long_prefill_token_threshold": 256}, False),
        ({"max_num_batched_tokens": 512, "every": 30}, False),
    ],
)
def test_only_the_budget_counts_for_the_promise(changed, done):
    assert task("promise").reached(*hidden(**changed)) == done
