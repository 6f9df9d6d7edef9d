"""A lab that is opened again stands where one left it: sliders and measured tables, and where to go on."""

from __future__ import annotations

import json

import pytest

from course.exercises import Lab, TaskRecord
from course.exercises.progress import Progress
from course.explore import Explorer
from course.explore.table import with_earlier
from course.explore.words import words_on_the_screen
from tests.exercises.test_lab import widgets_of
from tests.helpers.toy_explorer import CHUNKED, CV, POLICY, RATE, SLOTS, Simulation, figure, summary
from tests.helpers.toy_lab import TOY


def explorer(folder, simulation=None) -> Explorer:
    """The explorer after a restart of the kernel."""
    record = TaskRecord("98", Progress(folder), explorer="server")
    return Explorer(simulation or Simulation(), [RATE, SLOTS, CV, POLICY, CHUNKED], figure, summary, record=record)


def test_sliders_stand_where_they_were_left_and_the_text_does_not_move(tmp_path):
    first = explorer(tmp_path)
    text = first.text()
    first.set(rate=7, policy="static", chunked=False)
    simulation = Simulation()
    second = explorer(tmp_path, simulation)
    assert second.text() == text
    view = second.new_view()
    assert view.settings == first.view.settings
    assert (view.controls["rate"].value, view.controls["policy"].value) == (7, "static")
    assert view.result == second.compute(**first.view.settings)
    view.reset.click()
    assert explorer(tmp_path).new_view().settings == second.defaults


@pytest.mark.parametrize(
    ("kept", "stands"),
    [
        ({"rate": 9, "gone": 1}, {"rate": 9}),
        ({"rate": 10**30, "policy": ["static"], "cv": None, "chunked": 1}, {}),
        ({"max_num_seqs": 3}, {}),  # between two stops
        (["rate", 9], {}),
        ("rate", {}),
    ],
)
def test_what_another_version_kept_is_taken_as_far_as_it_goes(tmp_path, kept, stands):
    one = explorer(tmp_path)
    one.record.leave({"settings": kept})
    assert explorer(tmp_path).left() == {**one.defaults, **stands}


def test_an_entry_of_another_kind_is_nothing(tmp_path):
    Progress(tmp_path).change("98", "explorers", "server", lambda _: [1, 2])
    assert explorer(tmp_path).left() == explorer(tmp_path).defaults
    explorer(tmp_path).set(rate=8)
    assert explorer(tmp_path).left()["rate"] == 8


def test_an_explorer_without_a_name_is_not_kept(tmp_path):
    record = TaskRecord("98", Progress(tmp_path))
    record.leave({"settings": {"rate": 9}})
    assert record.left() == {}


def test_measured_columns_come_back_and_say_so(tmp_path):
    def compare(settings, runs):
        return [
            ("", "static", "continuous"),
            ("steps", *("7" if name in runs else "-" for name in ("static", "continuous"))),
        ]

    def page():
        record = TaskRecord("98", Progress(tmp_path), explorer="words")
        return words_on_the_screen(
            ["Spell owl."], choices=("static", "continuous"), compare=compare, record=record, tasks=()
        )

    first = page()
    first.set(policy="static")
    second = page()
    assert second.compared(second.defaults)[1] == ("steps", "7 (earlier)", "-")
    second.set(policy="continuous")
    assert second.compared(second.defaults)[1] == ("steps", "7 (earlier)", "7")
    assert page().compared(second.defaults)[1] == ("steps", "7 (earlier)", "7 (earlier)")
    assert page().compared({**second.defaults, "rate": 2})[1] == ("steps", "-", "-")


@pytest.mark.parametrize(
    "kept", [None, [], [["steps"]], [["", "a"], 5], [["", "a"], ["other", "5"]], [["", "a"], ["steps", 5]]]
)
def test_a_kept_table_of_another_shape_changes_nothing(kept):
    rows = (("", "a"), ("steps", "-"))
    assert with_earlier(rows, kept) == rows


def test_a_saved_notebook_never_says_that_nothing_is_stored(tmp_path):
    lab = Lab(TOY, Progress(tmp_path), show=False)
    stored = lab.where()._repr_mimebundle_()["text/plain"]
    lab.check("little", 12)
    assert lab.where()._repr_mimebundle_()["text/plain"] == stored
    assert "Nothing is stored" not in stored and "says where you left off" in stored


def test_the_quiz_ends_with_where_to_go_on(tmp_path):
    lab = Lab(TOY, Progress(tmp_path), show=False)
    form = lab.quiz()
    stored = form._repr_mimebundle_()["text/plain"]
    assert "Next: prediction p99" in widgets_of(form.root, "HTML")[-1].value
    lab.predict("p99", "b")
    again = lab.quiz()
    assert again._repr_mimebundle_()["text/plain"] == stored
    assert "Next: prediction mean" in widgets_of(again.root, "HTML")[-1].value


def test_progress_files_without_explorers_are_read(tmp_path):
    (tmp_path / "progress.json").write_text(
        json.dumps({"schema": 1, "labs": {"98": {"tasks": {"x": {"state": "done"}}}}})
    )
    assert TaskRecord("98", Progress(tmp_path), explorer="server").states() == {"x": "done"}
    assert explorer(tmp_path).left() == explorer(tmp_path).defaults
