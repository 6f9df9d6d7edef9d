"""Every explorer of the lessons, as the notebooks show it, and every task: reachable, honest, not done by accident."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from course.base import answers
from course.desk.catalogue import PRIMER
from course.exercises import TaskRecord
from course.explore import Choice, Explorer, Slider
from course.explore.tasks import DONE, SHOWN, Find, Memory, Read, Task, Way, Why
from course.lessons import available, load
from course.notebooks.template import BESIDE_A_BOARD
from tests.helpers.figures import valid
from tests.helpers.lesson_explorers import explorer, makers, tables
from tests.helpers.sizes import size

EXPLORERS = list(makers())
WITH_TASKS = [name for name in EXPLORERS if explorer(name).tasks]
TASKS = [pytest.param(name, task, id=f"{name}-{task.id}") for name in WITH_TASKS for task in explorer(name).tasks]
SIMULATED = [name for name in EXPLORERS if type(explorer(name)) is Explorer]
"""Those that measure nothing here."""
MOST_STOPS = 12
"""Stops of a slider that a sweep rests at; a hand does not rest at more."""
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")


def as_typed(text: str) -> float:
    return float(text.replace(",", ""))


@cache
def result_at(name: str, settings: tuple[tuple[str, Any], ...]) -> Any:
    return explorer(name).compute(**dict(settings))


def run(name: str, settings: dict[str, Any]) -> Any:
    return result_at(name, tuple(settings.items()))


def sweeps(shown: Explorer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each control, moved from one end to the other with the others at the start, and over every setting shown."""
    for control in shown.controls:
        stops = list(control.stops)
        if isinstance(control, Slider) and len(stops) > MOST_STOPS:
            few = {stops[round(k * (len(stops) - 1) / (MOST_STOPS - 1))] for k in range(MOST_STOPS)}
            few |= {shown.settings_of(task)[control.name] for task in shown.tasks}
            stops = sorted(few)
        yield control.name, [shown.defaults | {control.name: stop} for stop in stops]


def test_labs_have_explorers() -> None:
    assert EXPLORERS


@pytest.mark.parametrize("name", EXPLORERS)
def test_its_text_ends_with_its_tasks_and_with_answers_only_where_they_are_wanted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = explorer(name)
    kept = shown.text().splitlines()
    monkeypatch.setenv(answers.VARIABLE, "1")
    lines = shown.text().splitlines()
    tasks = [line for line in lines if re.match(r"Task \d+\. ", line)]
    assert tasks == [f"Task {number}. {task.text}" for number, task in enumerate(shown.tasks, start=1)]
    told = [line for line in lines if line.startswith("  Answer: ")]
    assert len(told) == len(tasks)
    if tasks:
        assert lines[-1] == told[-1]
    assert kept == [line for line in lines if line not in told]


@pytest.mark.parametrize("name", SIMULATED)
def test_it_draws_with_every_control_at_its_ends(name: str) -> None:
    shown = explorer(name)
    ends = [{control.name: stop} for control in shown.controls for stop in (control.stops[0], control.stops[-1])]
    for settings in (shown.defaults | end for end in [{}, *ends]):
        result = run(name, settings)
        valid(shown.drawn(result))
        rows = shown.rows(result)
        assert rows and len({len(row) for row in rows}) == 1, settings
        assert "nan" not in " ".join(cell for row in rows for cell in row).split(), settings


@pytest.mark.parametrize("number", available())
def test_a_table_of_a_lab_has_a_caption_and_full_rows(number: str) -> None:
    for make in tables(number):
        shown = make()
        text = shown._repr_mimebundle_()["text/plain"]
        assert text.startswith(shown.caption) and "nan" not in text.split()
        assert len({len(row) for row in shown.rows}) == 1, make


@pytest.mark.parametrize("name", WITH_TASKS)
def test_an_explorer_has_four_tasks_or_three_beside_a_board_and_ends_with_a_why(name: str) -> None:
    tasks = explorer(name).tasks
    if name.startswith(f"lab{PRIMER}."):  # one task for each of its parts
        assert len(tasks) == 1
    else:
        beside_a_board = len(load(name[3:5]).tasks) == BESIDE_A_BOARD  # that there is one, test_template.py asks
        assert len(tasks) == (3 if beside_a_board else 4) and isinstance(tasks[-1], Why)


@pytest.mark.parametrize("number", available())
def test_a_lab_lists_the_tasks_of_its_explorers(number: str) -> None:
    mine = [task for name in WITH_TASKS if name.startswith(f"lab{number}.") for task in explorer(name).tasks]
    assert sorted(task.id for task in load(number).tasks) == sorted(task.id for task in mine)


@pytest.mark.parametrize("name", WITH_TASKS)
def test_its_tasks_are_kept_in_the_progress_of_its_lab(name: str) -> None:
    record = explorer(name).record
    assert isinstance(record, TaskRecord) and record.number == name[3:5]


@pytest.mark.parametrize("name", WITH_TASKS)
def test_nothing_is_done_at_the_start(name: str) -> None:
    shown = explorer(name)
    at_start = shown.default_result()
    reached = [t.id for t in shown.tasks if isinstance(t, Find) and t.reached(shown.defaults, at_start)]
    assert reached == []


@pytest.mark.parametrize(("name", "task"), TASKS)
def test_a_task_is_reached_where_it_is_shown(name: str, task: Task) -> None:
    """The controls can stand there, and whoever finds, types or chooses what is right there has done the task."""
    shown = explorer(name)
    settings = shown.settings_of(task)
    result = run(name, settings)
    way = Way((task,), Memory(), lambda _task: (settings, result))
    if isinstance(task, Find):
        way.rested(settings, result)
    elif isinstance(task, Read):
        value = task.value(settings, result)
        # As the answer says it, and rounded to two digits: 0.42% is about 0.4%.
        said = [
            number
            for number in NUMBER.findall(task.said(settings, result))
            if abs(as_typed(number) - value) < 0.1 * abs(value)
        ]
        for text in (f"{value:.2g}", *said, f"{value:.3g}"):
            way = Way((task,), Memory(), lambda _task: (settings, result))
            way.typed(text, settings, result)
            assert way.states == {task.id: DONE}, (text, way.said)
    else:
        way.chosen(task.position)
    assert way.states == {task.id: DONE}, way.said


STAYS = [case for case in TASKS if isinstance(case.values[1], Find) and case.values[1].stay]


@pytest.mark.parametrize(("name", "task"), STAYS)
def test_a_task_that_compares_with_the_start_says_what_else_was_moved(name: str, task: Find) -> None:
    """And not a number beside one of another setting."""
    shown = explorer(name)
    settings = shown.settings_of(task)
    result = run(name, settings)
    for control in shown.controls:
        if control.name in task.stay:
            stop = next(stop for stop in control.stops if stop != task.stay[control.name])
            way = Way((task,), Memory(), lambda _task: (settings, result), shown.controls)
            assert not way.rested(settings | {control.name: stop}, result)
            assert f"set {control.label} back to {control.text(task.stay[control.name])}, or press Reset" in way.said


def named(shown: Explorer) -> list[Choice]:
    """Choices among names: that a number leaves another control without effect is for a learner to find."""
    return [one for one in shown.controls if isinstance(one, Choice) and isinstance(one.default, str)]


GREYED = [name for name in SIMULATED if explorer(name).unused]
CHOOSING = [name for name in SIMULATED if len(explorer(name).controls) > 1 and named(explorer(name))]


@pytest.mark.parametrize("name", size(small=GREYED, whole=CHOOSING))
def test_a_control_is_greyed_out_where_it_does_nothing_and_nowhere_else(name: str) -> None:
    shown = explorer(name)

    def seen(settings: dict[str, Any]) -> Any:
        result = run(name, settings)
        return shown.rows(result), shown.drawn(result).to_json()

    for choice in named(shown):
        for control in (one for one in shown.controls if one is not choice):
            stops = [control.stops[place] for place in (0, len(control.stops) // 2, -1)]
            under = [shown.defaults | {choice.name: option} for option in choice.stops]
            acts = [any(seen(at | {control.name: stop}) != seen(at) for stop in stops) for at in under]
            for at, does in zip(under, acts, strict=True):
                assert not (does and shown.does_nothing(control.name, at)), (control.name, at)
                assert does or not any(acts) or shown.does_nothing(control.name, at), (control.name, at)


def test_a_greyed_control_can_be_moved_again_where_it_does_something() -> None:
    view = explorer("lab09.reserved_or_paged").new_view()
    how, size_of_blocks = view.controls["how"], view.controls["block_size"]
    assert size_of_blocks.disabled
    how.value = how.options[-1][1]
    assert not size_of_blocks.disabled
    view.reset.click()
    assert size_of_blocks.disabled


@pytest.mark.parametrize(("name", "task"), TASKS)
def test_the_answer_has_its_numbers_from_the_result(name: str, task: Task) -> None:
    """A number in the sentence is a fact in braces, but for names such as p99 and H100 and for small whole numbers."""
    typed = re.findall(r"(?<![\w{])\d[\d,.]*", re.sub(r"\{[^}]*\}", "{}", task.answer))
    assert [text for text in typed if float(text.strip(".,").replace(",", "")) > 1] in ([], ["300"])
    settings = explorer(name).settings_of(task)
    said = task.said(settings, run(name, settings))
    assert "nan" not in said.split() and "{" not in said and said.endswith(".")
    assert task.claim is None or task.claim(settings, run(name, settings)), said


@pytest.mark.parametrize("name", WITH_TASKS)
def test_one_sweep_of_a_control_completes_one_task_at_most(name: str) -> None:
    shown = explorer(name)
    for control, settings in sweeps(shown):
        reached = Counter()
        for each in settings:
            result = run(name, each)
            for task in shown.tasks:
                if isinstance(task, Find) and task.reached(each, result):
                    reached[task.id] += 1
                    # What the answer says beyond its numbers holds wherever a learner may get it.
                    assert task.claim is None or task.claim(each, result), (task.id, each, task.said(each, result))
        assert len(reached) <= 1, f"moving {control} alone completes {', '.join(reached)}"


@pytest.mark.parametrize("name", WITH_TASKS)
def test_no_task_is_done_where_the_one_before_it_is_shown(name: str) -> None:
    tasks = explorer(name).tasks
    for before, task in pairwise(tasks):
        settings = explorer(name).settings_of(before)
        assert not (isinstance(task, Find) and task.reached(settings, run(name, settings))), task.id


def test_right_options_are_spread_and_no_longer_than_the_others() -> None:
    whys = [task for name in WITH_TASKS for task in explorer(name).tasks if isinstance(task, Why)]
    letters = Counter(task.right for task in whys)
    assert len(whys) < 3 or max(letters.values()) <= len(whys) / 2, letters
    longest = [t.id for t in whys if len(t.options[t.position][0]) == max(len(text) for text, _ in t.options)]
    assert len(longest) <= len(whys) / 3, f"the longest option is the right one in {longest}"


@pytest.mark.parametrize("name", WITH_TASKS)
def test_a_whole_explorer_by_show_me_and_by_oneself(name: str) -> None:
    """The way through, in one display: each task first missed twice and shown, then all of them done."""
    for state in (SHOWN, DONE):
        shown = makers()[name]()
        shown.record = Memory()
        shown._repr_mimebundle_()
        view = shown.view.tasks
        for number, task in enumerate(shown.tasks, start=1):
            assert view.way.task is task and view.way.open
            if state == SHOWN:
                view.way.misses = 2
                view.show.click()
            elif isinstance(task, Find):
                shown.set(**shown.settings_of(task))
            else:
                shown.set(**shown.settings_of(task))
                if isinstance(task, Read):
                    view.field.value = f"{task.value(*view._now()):.3g}"
                else:
                    view.radio.index = task.position
                view.check.click()
            assert view.way.states[task.id] == state, view.way.said
            assert task.said(*shown.shown(task)) in view.way.said
            if number < len(shown.tasks):
                view.next.click()
        assert set(shown.record.states().values()) == {state}
