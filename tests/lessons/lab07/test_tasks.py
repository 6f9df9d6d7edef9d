"""Lab 07: where a task of an explorer is done, and where it is not, beside the setting that it shows."""

from types import SimpleNamespace

import numpy as np
import pytest

from course.lessons import load
from course.lessons.lab07 import long_prompt, tasks
from course.lessons.lab07.long_prompt import CLASS, MEET, WHOLE

MOMENT = {"max_num_batched_tokens": WHOLE, "long_prefill_token_threshold": 0, "at_once": 1, "crowd": 0}
HIDDEN = {"max_num_batched_tokens": WHOLE, "long_prefill_token_threshold": 0, "every": 20, "limit_ms": 100}
LOW = {"max_num_batched_tokens": 512}
BOTH = {"max_num_batched_tokens": 4_096, "long_prefill_token_threshold": 512, "at_once": MEET, "crowd": CLASS}
CASES = [
    ("budget", LOW, True),
    ("budget", {}, False),
    ("budget", LOW | {"long_prefill_token_threshold": 256}, False),  # not the budget alone
    ("budget", LOW | {"at_once": 2}, False),
    ("budget", LOW | {"crowd": CLASS}, False),
    ("both", BOTH, True),
    ("both", BOTH | {"max_num_batched_tokens": 2_048, "long_prefill_token_threshold": 256}, True),
    ("both", BOTH | {"at_once": 1}, False),
    ("both", BOTH | {"crowd": 0}, False),
    ("both", BOTH | {"long_prefill_token_threshold": 0}, False),  # the budget alone
    ("both", BOTH | {"max_num_batched_tokens": WHOLE}, False),  # the cap alone: the class is in one step
    ("promise", LOW, True),
    ("promise", {"max_num_batched_tokens": 8_192}, False),
    ("promise", LOW | {"long_prefill_token_threshold": 256}, False),
]


def task(name):
    return next(one for one in load("07").tasks if one.id == name)


@pytest.mark.parametrize(("name", "changed", "done"), CASES)
def test_where_a_task_is_done(name, changed, done):
    first = name in ("budget", "both")
    settings = (MOMENT if first else HIDDEN) | changed
    result = (long_prompt.moment if first else long_prompt.hidden)(*settings.values())
    assert task(name).reached(settings, result) == done


@pytest.mark.parametrize("last", [tasks.FIRST, 1.2 * tasks.FIRST])
def test_all_who_come_later_must_be_in_time_and_not_the_first_alone(last):
    ttft = np.array([0.01, 1.0, 0.5 * tasks.FIRST, 0.5 * tasks.FIRST, last])  # a chat, a long prompt, those who come
    result = SimpleNamespace(run=SimpleNamespace(ttft=ttft), later=slice(2, None), gap=tasks.GAP)
    assert task("both").reached(MOMENT | {"at_once": MEET, "crowd": CLASS}, result) == (last <= tasks.FIRST)
