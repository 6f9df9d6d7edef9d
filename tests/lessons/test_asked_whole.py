"""What a task asks is a whole sentence: holes are filled in, for only answers are given the numbers of a run."""

from __future__ import annotations

import re

import pytest

from course.exercises.lesson import available, load
from tests.helpers.lesson_explorers import explorer, makers


@pytest.mark.parametrize("number", available())
def test_no_task_shows_a_brace_to_a_learner(number: str) -> None:
    assert [task.id for task in load(number).tasks if re.search(r"[{}]", task.text)] == []


TOLD = {"lab15": ("order_alone",), "lab17": ("pace", "moved"), "lab18": ("first", "cache")}


@pytest.mark.parametrize("lab", TOLD)
def test_a_why_that_names_numbers_names_those_of_its_explorer(lab: str) -> None:
    """Run again where the task is shown: each number of the text stands among what the explorer's own facts say."""
    found = [(explorer(name), task) for name in makers() if lab in name for task in explorer(name).tasks]
    asked = [(shown, task) for shown, task in found if task.id in TOLD[lab]]
    assert len(asked) == len(TOLD[lab])
    for shown, task in asked:
        said = [str(value) for value in task.facts(*shown.shown(task)).values()]
        numbers = re.findall(r"\d[\d.,]*(?: ms\b| s\b|%)", task.text)
        assert numbers and all(number in said for number in numbers), (task.text, said)
