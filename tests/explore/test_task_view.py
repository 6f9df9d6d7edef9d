"""The tasks on the screen: what is there to press, what is said and spoken, and tasks that fail."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from course.exercises import TaskRecord
from course.exercises.progress import Progress
from course.explore.tasks import DONE, SHOWN, Memory
from tests.helpers.toy_tasks import FIND, READ, TASKS, WHY, explorer, simulate


def opened(*tasks: Any, **other: Any) -> Any:
    """The view of an explorer with these tasks."""
    shown = explorer(tasks or TASKS, **other)
    shown._repr_mimebundle_()
    return shown.view


def buttons(view: Any) -> list[str]:
    return [button.description for button in view.tasks.buttons.children]


def said(view: Any) -> str:
    """What stands below the task, without its tags."""
    return re.sub("<[^>]*>", "", view.tasks.said.value)


def move(view: Any, **settings: Any) -> None:
    for name, value in settings.items():
        view.controls[name].value = value


def answer(view: Any, text: str) -> None:
    view.tasks.field.value = text
    view.tasks.check.click()


def test_nothing_is_judged_before_something_has_moved():
    view = opened()
    assert said(view) == "" and buttons(view) == [] and view.tasks.way.misses == 0
    assert "Task 1 of 3" in view.tasks.head.value and FIND.text in view.tasks.text.value


def test_a_whole_way_by_hand():
    view = opened()
    move(view, rate=10)
    assert said(view) == "The load is 25% here." and buttons(view) == []
    move(view, rate=36)
    assert said(view) == "Done: The load is 90%." and buttons(view) == ["Next task"]
    view.tasks.next.click()
    assert buttons(view) == ["Check", "Back"] and said(view) == ""
    answer(view, "30")
    assert "Reset goes back to the start" in said(view)
    move(view, rate=30)
    answer(view, "0.03 s")
    assert said(view) == "Done: At a load of 75%." and buttons(view) == ["Back", "Next task"]
    view.tasks.next.click()
    view.tasks.check.click()
    assert said(view) == "Choose one first."
    view.tasks.radio.index = 1
    assert view.tasks.way.open, "nothing is judged before Check"
    view.tasks.check.click()
    assert said(view) == "Done: The load is only 25%. That was the last task here: 3 of 3 done by yourself."
    assert buttons(view) == ["Back"]


def test_only_the_parts_of_its_kind_are_on_the_screen():
    view = opened()
    fields, options = view.tasks.entry.layout, view.tasks.options.layout
    assert (fields.display, options.display) == ("none", "none")
    move(view, rate=36)
    view.tasks.next.click()
    assert (fields.display, options.display) == ("flex", "none") and view.tasks.unit.value == "ms"
    move(view, rate=30)
    answer(view, "30")
    assert (fields.display, options.display) == ("none", "none")
    view.tasks.next.click()
    assert (fields.display, options.display) == ("none", "block")
    assert view.tasks.radio.options == ("a) It rains.", "b) Few come.", "c) Many leave.")
    assert view.tasks.radio.index is None and view.tasks.unit.value == "" and view.tasks.field.value == ""


def test_the_enter_key_checks_and_other_messages_do_not():
    view = opened(READ)
    move(view, rate=30)
    view.tasks.field.value = "30"
    for message in ({"event": "other"}, "submit", None):
        view.tasks.field._handle_custom_msg(message, [])
        assert view.tasks.way.open
    view.tasks.field._handle_custom_msg({"event": "submit"}, [])
    assert view.tasks.way.states == {"wait": DONE}


def test_show_me_moves_the_controls_and_marks_the_task_shown():
    record = Memory()
    view = opened(record=record)
    move(view, rate=10, slots=8)
    assert buttons(view) == ["Show me"], "two settled misses"
    view.tasks.show.click()
    assert said(view) == "Shown: The load is 90%." and record.states() == {"full": SHOWN}
    assert {name: control.value for name, control in view.controls.items()} == {"rate": 36, "slots": 32}
    assert view.settings == {"rate": 36, "slots": 32} and view.result == simulate(36, 32)
    assert "0.900" in view.table.value
    view.tasks.next.click()
    assert view.tasks.way.misses == 0, "and the move was no miss of the next task"


def test_the_last_sentence_counts_what_was_done_by_oneself():
    view = opened(FIND, WHY)
    for slots in (8, 16):
        move(view, slots=slots)
    view.tasks.show.click()
    view.tasks.next.click()
    view.tasks.radio.index = 1
    view.tasks.check.click()
    assert said(view).endswith("That was the last task here: 1 of 2 done by yourself.")


def test_marks_are_seen_and_spoken():
    record = Memory()
    record.keep("full", SHOWN), record.keep("wait", DONE)
    head = opened(record=record).tasks.head.value
    spoken = re.findall(r'course-spoken">([^<]*)<', head)
    assert spoken == ["task 1 shown, ", "task 2 done, ", "task 3 not done yet, "]
    marks = re.findall(r'course-mark([^"]*)" aria-hidden="true">(.)<', head)
    assert marks == [("", "◐"), ("", "✓"), (" course-here", "○")]
    assert 'role="status"' in opened(record=keeping(*TASKS)).tasks.said.value


def keeping(*tasks: Any) -> Memory:
    record = Memory()
    for task in tasks:
        record.keep(task.id, DONE)
    return record


def test_what_a_task_says_is_text():
    view = opened(replace(FIND, text="<b>x</b>", miss="<i>{load}</i>"))
    move(view, rate=10)
    assert "<b>x" not in view.tasks.text.value and "&lt;i&gt;25%" in view.tasks.said.value


def test_reset_is_no_answer():
    view = opened(replace(FIND, reached=lambda settings, result: settings["rate"] == 20))
    move(view, rate=10)
    misses = view.tasks.way.misses
    view.reset.click()
    assert view.tasks.way.open and view.tasks.way.misses == misses == 1


def test_an_explorer_shown_twice_has_two_ways_and_one_record():
    shown = explorer()
    shown._repr_mimebundle_()
    first = shown.view
    shown._repr_mimebundle_()
    second = shown.view
    move(second, rate=36)
    assert said(first) == "" and first.settings["rate"] == 20, "each display has controls of its own"
    move(first, rate=10), move(first, rate=11)
    first.tasks.show.click()
    assert shown.record.states() == {"full": DONE}, "what was done stays done"
    shown._repr_mimebundle_()
    assert shown.view.tasks.way.task is READ, "a cell that runs again goes on where the learner was"


def test_two_explorers_with_the_same_progress(tmp_path):
    one, other = (explorer(record=TaskRecord("03", Progress(tmp_path))) for _ in range(2))
    one.set(rate=36)
    other.set(rate=36)
    other.view.tasks.next.click()
    other.set(rate=30)
    answer(other.view, "30")
    again = explorer(record=TaskRecord("03", Progress(tmp_path)))
    again._repr_mimebundle_()
    assert again.view.tasks.way.states == {"full": DONE, "wait": DONE}


# Progress that goes bad in the middle


@pytest.mark.parametrize("content", [b"{", b"", b'{"schema": 99}', b"\xff\xfe"])
def test_a_progress_file_that_is_damaged_in_the_middle(tmp_path, content):
    progress = Progress(tmp_path)
    view = opened(record=TaskRecord("03", progress))
    move(view, rate=36)
    progress.path.write_bytes(content)
    view.tasks.next.click()
    move(view, rate=30)
    answer(view, "30")
    assert said(view) == "Done: At a load of 75%."
    assert TaskRecord("03", Progress(tmp_path)).states() == {"wait": DONE}
    assert "It is kept as progress." in progress.notices[0]


def test_a_progress_folder_that_is_read_only_from_the_middle_on(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(tmp_path))
    view = opened(record=TaskRecord("03"))
    move(view, rate=36)

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("course.base.files.replace", refused)
    view.tasks.next.click()
    move(view, rate=30)
    answer(view, "30")
    assert said(view) == "Done: At a load of 75%."
    again = opened(record=TaskRecord("03"))
    assert again.tasks.way.task is WHY, "remembered while the kernel runs, also by a cell that runs again"


# Tasks that fail


def fails(*_: Any) -> Any:
    raise ZeroDivisionError("division by zero")


def test_a_task_that_cannot_be_judged_says_so_and_the_explorer_goes_on():
    view = opened(replace(FIND, reached=fails))
    move(view, rate=10)
    assert "ZeroDivisionError: division by zero. Move back" in said(view) and view.tasks.way.open
    assert "0.250" in view.table.value and view.notice.value == "", "the run itself has worked"
    assert view.explorer.set(rate=11) == simulate(11, 32)
    view.tasks.show.click()
    assert said(view).startswith("Shown: The load is 90%.")


@pytest.mark.parametrize("part", ["reached", "facts"])
def test_a_task_that_fails_at_one_setting_recovers_at_the_next(part):
    working = getattr(FIND, part)
    view = opened(replace(FIND, **{part: lambda s, r: fails() if s["rate"] == 10 else working(s, r)}))
    move(view, rate=10)
    assert "ZeroDivisionError" in said(view)
    move(view, rate=36)
    assert said(view).startswith("Done: The load is 90%.")


@pytest.mark.parametrize("part", ["value", "where", "facts"])
def test_a_value_that_cannot_be_judged(part):
    view = opened(replace(READ, **{part: fails}))
    move(view, rate=30)
    answer(view, "30")
    assert "ZeroDivisionError" in said(view) and view.tasks.way.open


def test_a_reason_whose_answer_cannot_be_computed():
    view = opened(replace(WHY, facts=fails), FIND)
    view.tasks.radio.index = 1
    view.tasks.check.click()
    assert "ZeroDivisionError" in said(view) and view.tasks.way.open


def sometimes(rate: int, slots: int) -> dict[str, float]:
    if rate == 36:
        raise ValueError("36 does not work: move away")
    return simulate(rate, slots)


def test_show_me_where_the_run_fails_says_so_twice():
    view = opened(simulate=sometimes)
    move(view, rate=10), move(view, rate=11)
    view.tasks.show.click()
    assert said(view) == "36 does not work: move away." and view.tasks.way.open
    assert "36 does not work" in view.notice.value and view.controls["rate"].value == 36
    move(view, rate=40)
    assert said(view) == "Done: The load is 100%." and view.notice.value == ""


def test_an_explorer_whose_last_task_can_no_longer_be_shown_is_shown():
    view = opened(FIND, simulate=sometimes, record=keeping(FIND))
    assert "36 does not work" in said(view) and "0.500" in view.table.value


def test_a_run_that_fails_is_no_miss_and_nothing_to_read():
    view = opened(FIND, simulate=lambda rate, slots: fails() if rate == 30 else simulate(rate, slots))
    move(view, rate=30)
    assert view.tasks.way.misses == 0 and said(view) == ""
    view = opened(READ, simulate=lambda rate, slots: fails() if rate == 30 else simulate(rate, slots))
    move(view, rate=30)
    answer(view, "30")
    assert said(view) == "There is nothing to read yet: the run is not complete, or it failed."
    assert view.tasks.way.misses == 0
