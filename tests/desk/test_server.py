"""What is saved: notebooks without live widgets, with what they showed as text."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest

from course.desk import pages, server
from course.desk.server import AGAIN, WIDGET_VIEW, strip_ours, strip_views

VIEW = {"version_major": 2, "version_minor": 0, "model_id": "0"}


def notebook(*outputs: dict) -> dict:
    cell = {"cell_type": "code", "source": "x", "metadata": {}, "execution_count": 1, "outputs": list(outputs)}
    content = {
        "cells": [{"cell_type": "markdown", "source": "# A"}, cell],
        "metadata": {"widgets": {"state": 1}, "k": 2},
    }
    return {"type": "notebook", "content": content | {"nbformat": 4, "nbformat_minor": 5}}


def shown(data: dict) -> dict:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def outputs(model: dict) -> list[dict]:
    return model["content"]["cells"][1]["outputs"]


@pytest.mark.parametrize("stored", ["a table", ["a ", "table"]])
def test_a_view_becomes_its_text_and_one_line(stored) -> None:
    model = notebook(shown({WIDGET_VIEW: VIEW, "text/plain": stored}))
    strip_views(model)
    assert outputs(model)[0]["data"] == {"text/plain": f"a table\n\n{AGAIN}"}
    assert model["content"]["metadata"] == {"k": 2}
    again = copy.deepcopy(model)
    strip_views(again)
    assert again == model


def test_a_view_without_text_leaves_the_line() -> None:
    model = notebook(shown({WIDGET_VIEW: VIEW}))
    strip_views(model)
    assert outputs(model)[0]["data"] == {"text/plain": AGAIN}


def test_everything_else_is_saved_as_it_is() -> None:
    model = notebook(
        shown({"text/plain": "1", "text/html": "<b>1</b>"}),
        {"output_type": "stream", "name": "stdout", "text": "hello"},
        {"output_type": "error", "ename": "E", "evalue": "", "traceback": []},
    )
    before = copy.deepcopy(outputs(model))
    strip_views(model)
    assert outputs(model) == before


@pytest.mark.parametrize(
    "model",
    [
        {"type": "file", "content": "text"},
        {"type": "directory", "content": None},
        {"type": "notebook", "content": None},
        {"type": "notebook"},
        {"type": "notebook", "content": {}},
    ],
)
def test_what_is_no_notebook_is_left_alone(model: dict) -> None:
    before = copy.deepcopy(model)
    strip_views(model)
    assert model == before


class Contents:
    """The two verbs of a contents manager that take hooks."""

    def __init__(self) -> None:
        self.before, self.after = [], []
        self.register_pre_save_hook, self.register_post_save_hook = self.before.append, self.after.append


def test_the_start_page_follows_when_a_lab_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, warned = [], []
    monkeypatch.setenv("COURSE_LABS", str(tmp_path / "labs"))
    monkeypatch.setenv("COURSE_COPIES", str(tmp_path / "mine"))
    monkeypatch.setattr(pages, "write_pages", lambda *folders: written.append(folders) or (None, ["a remark"]))
    app = SimpleNamespace(contents_manager=Contents(), log=SimpleNamespace(warning=warned.append))
    server._load_jupyter_server_extension(app)
    assert app.contents_manager.before == [strip_views]
    (saved,) = app.contents_manager.after
    saved(os_path="notes.md", model={}, contents_manager=None)
    assert written == []
    saved(os_path="03_a.ipynb", model={}, contents_manager=None)
    assert written == [(tmp_path / "labs", tmp_path / "mine")] and warned == ["a remark"]


def test_a_page_that_cannot_be_written_fails_no_saving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_):
        raise RuntimeError("a bug")

    warned = []
    monkeypatch.setenv("COURSE_LABS", str(tmp_path))
    monkeypatch.setenv("COURSE_COPIES", str(tmp_path))
    monkeypatch.setattr(pages, "write_pages", broken)
    app = SimpleNamespace(contents_manager=Contents(), log=SimpleNamespace(warning=warned.append))
    server._load_jupyter_server_extension(app)
    app.contents_manager.after[0](os_path="03_a.ipynb", model={}, contents_manager=None)
    assert warned == ["The start page cannot be written: RuntimeError: a bug"]


def test_without_a_learners_folder_only_saving_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where somebody else's server loads the extension."""
    for name in ("COURSE_LABS", "COURSE_COPIES"):
        monkeypatch.delenv(name, raising=False)
    app = SimpleNamespace(contents_manager=Contents())
    server._load_jupyter_server_extension(app)
    assert app.contents_manager.before == [strip_ours] and app.contents_manager.after == []


@pytest.mark.parametrize(
    ("source", "ours"),
    [("from course.exercises import Lab", True), ("x = 1\nimport course", True), ("of course", False), ("", False)],
)
def test_on_somebody_elses_server_other_notebooks_keep_their_widgets(source: str, ours: bool) -> None:
    model = notebook(shown({WIDGET_VIEW: VIEW, "text/plain": "a table"}))
    model["content"]["cells"][1]["source"] = source
    strip_ours(model)
    assert (WIDGET_VIEW not in outputs(model)[0]["data"]) == ours
    for empty in ({"type": "file", "content": "text"}, {"type": "notebook", "content": None}, {}):
        strip_ours(empty)
