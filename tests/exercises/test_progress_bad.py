"""Progress and what lies where its file should be: kept aside, left alone, never overwritten, never waited for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from course.exercises import progress as module
from course.exercises.progress import LARGEST, SCHEMA, Progress
from tests.helpers.odd_files import link_to, pipe

EMPTY = {"predictions": {}, "tasks": {}, "exercises": {}, "quiz": {}, "boards": {}, "explorers": {}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "course" / "data"


def entry(value: str) -> str:
    """A file with one entry, which a checked exercise would read, copy, change and write back."""
    return '{"schema": 1, "labs": {"03": {"exercises": {"little": ' + value + "}}}}"


def store(progress: Progress, name: str, value: object = True, lab: str = "03") -> None:
    progress.change(lab, "exercises", name, lambda _old: value)


def write(folder: Path, text: str | bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "progress.json").write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '"text"',
        "{}",
        '{"schema": 1}',
        '{"schema": "1", "labs": {}}',
        '{"schema": 0, "labs": {}}',
        '{"schema": true, "labs": {}}',
        '{"schema": 1, "labs": []}',
        '{"schema": 1, "labs": {"03": 7}}',
        '{"schema": 1, "labs": {"03": {"exercises": []}}}',
        b"\xff\xfe\x00",
        "[" * 100_000,
        entry("[" * 600 + "]" * 600),
        entry('{"a":' * 100 + "1" + "}" * 100),
        entry('{"tries": ' + "9" * 4_300 + "}"),
        entry('{"tries": ' + "9" * 5_000 + "}"),
        entry(str(-(2**63) - 1)),
        '{"schema": 1, "labs": {}, "mine": ' + "[" * 200 + "]" * 200 + "}",
        b" " * (LARGEST + 1),
    ],
    ids=lambda text: repr(text[:40]),
)
def test_a_corrupt_file_is_kept_aside(folder, text):
    write(folder, text)
    progress = Progress(folder)
    assert progress.lab("03") == EMPTY
    kept = folder / "progress.corrupt-1.json"
    assert kept.read_bytes() == (text if isinstance(text, bytes) else text.encode())
    assert len(progress.notices) == 1
    assert "could not be read" in progress.notices[0] and "progress.corrupt-1.json" in progress.notices[0]
    store(progress, "little")
    assert Progress(folder).lab("03")["exercises"] == {"little": True}
    assert kept.exists()


def test_each_corrupt_file_gets_the_next_free_number(folder):
    folder.mkdir(parents=True)
    (folder / "progress.corrupt-1.json").write_text("mine")
    for number in (2, 3):
        (folder / "progress.json").write_text("{")
        Progress(folder).lab("03")
        assert (folder / f"progress.corrupt-{number}.json").read_text() == "{"
    assert (folder / "progress.corrupt-1.json").read_text() == "mine"


def test_a_newer_file_is_kept_aside(folder):
    text = json.dumps({"schema": SCHEMA + 1, "labs": {"03": {"exercises": {"little": {"done": True}}}}})
    write(folder, text)
    progress = Progress(folder)
    store(progress, "capacity")
    assert (folder / "progress.newer-1.json").read_text() == text
    assert "newer version" in progress.notices[0]
    assert Progress(folder).lab("03")["exercises"] == {"capacity": True}


def test_a_migration_that_fails_keeps_the_file(folder, monkeypatch):
    store(Progress(folder), "little")
    monkeypatch.setattr(module, "SCHEMA", 2)
    assert Progress(folder).lab("03") == EMPTY
    assert (folder / "progress.corrupt-1.json").exists()


def test_a_folder_that_cannot_be_made_leaves_memory(tmp_path):
    (tmp_path / "file").write_text("in the way")
    progress = Progress(tmp_path / "file" / "data")
    store(progress, "little")
    store(progress, "capacity")
    assert set(progress.lab("03")["exercises"]) == {"little", "capacity"}
    assert len(progress.notices) == 1 and "until the kernel stops" in progress.notices[0]


def test_a_read_only_folder_leaves_memory_and_the_file_as_it_was(folder, monkeypatch):
    store(Progress(folder), "little")
    before = (folder / "progress.json").read_bytes()

    # Tests may run as root, whom no permission stops, so the refusal is put where the file system would give it.
    def refused(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module.files, "replace", refused)
    progress = Progress(folder)
    store(progress, "capacity")
    assert set(progress.lab("03")["exercises"]) == {"little", "capacity"}
    assert (folder / "progress.json").read_bytes() == before
    assert "Permission denied" in progress.notices[0]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes to read-only folders")
def test_a_read_only_folder_for_real(folder):
    store(Progress(folder), "little")
    folder.chmod(0o500)
    try:
        progress = Progress(folder)
        store(progress, "capacity")
        assert set(progress.lab("03")["exercises"]) == {"little", "capacity"}
        assert progress.notices
    finally:
        folder.chmod(0o700)


def test_a_corrupt_file_that_cannot_be_moved_is_not_overwritten(folder, monkeypatch):
    write(folder, "{")

    def refused(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module.files, "put_aside", refused)
    progress = Progress(folder)
    store(progress, "little")
    assert progress.lab("03")["exercises"] == {"little": True}
    assert (folder / "progress.json").read_text() == "{"
    assert "cannot be moved" in progress.notices[0]


def test_a_folder_in_place_of_the_file(folder):
    (folder / "progress.json").mkdir(parents=True)
    progress = Progress(folder)
    assert progress.lab("03") == EMPTY
    store(progress, "little")
    assert progress.lab("03")["exercises"] == {"little": True}
    assert progress.notices


@pytest.mark.parametrize(
    "value", ["null", "7", '"x"', "[1, null]", "NaN", "1e400", '"\\ud800"', str(2**63), "[" * 40 + "]" * 40]
)
def test_an_odd_entry_is_carried_along(folder, value):
    write(folder, entry(value))
    progress = Progress(folder)
    store(progress, "capacity")
    stored = json.loads((folder / "progress.json").read_text())["labs"]["03"]["exercises"]
    assert repr(stored) == repr({"capacity": True, "little": json.loads(value)}) and not progress.notices


@pytest.mark.parametrize("make", [pipe, link_to("/dev/zero"), link_to("/dev/null"), Path.mkdir], ids=range(4))
def test_what_is_no_file_is_neither_read_nor_moved_nor_replaced(folder, make):
    """A pipe would wait for ever, a device has no end, and /dev/null must not be renamed by a superuser."""
    folder.mkdir(parents=True)
    make(folder / "progress.json")
    before = os.stat(folder / "progress.json")
    progress = Progress(folder)
    assert progress.lab("03") == EMPTY
    store(progress, "little")
    assert progress.lab("03")["exercises"] == {"little": True} and not progress.kept()
    assert "not a file" in progress.notices[0] and "until the kernel stops" in progress.notices[0]
    assert [path.name for path in folder.iterdir()] == ["progress.json"]
    assert os.path.samestat(os.stat(folder / "progress.json"), before)
    with pytest.raises(OSError, match="not a file"):
        progress.forget("03", "now")


def test_a_file_that_turns_into_a_pipe_under_an_open_notebook(folder):
    progress = Progress(folder)
    store(progress, "little")
    (folder / "progress.json").unlink()
    pipe(folder / "progress.json")
    assert progress.lab("03") == EMPTY
    store(progress, "capacity")
    assert progress.lab("03")["exercises"] == {"capacity": True} and "not a file" in progress.notices[0]


def test_a_folder_that_must_not_be_entered(folder, monkeypatch):
    """The superuser may enter any, so the refusal is put where the system would give it."""
    stat = Path.stat

    def refused(path, **how):
        if path.name == "progress.json":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", refused)
    progress = Progress(folder)
    assert progress.lab("03") == EMPTY
    store(progress, "little")
    assert progress.lab("03")["exercises"] == {"little": True}
    assert len(progress.notices) == 1 and "cannot be used (Permission denied)" in progress.notices[0]
    assert not folder.exists()


def test_nothing_is_forgotten_where_no_copy_can_be_made(folder, monkeypatch):
    progress = Progress(folder)
    store(progress, "little")

    def refused(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module.files, "write_new", refused)
    with pytest.raises(PermissionError):
        progress.forget("03", "now")
    assert Progress(folder).lab("03")["exercises"] == {"little": True}


@pytest.mark.parametrize("folder", ["/tmp/" + "a" * 300, "~nosuchuser/x"])
def test_a_folder_that_cannot_be_named_is_a_notice_and_the_lab_goes_on(folder):
    progress = Progress(folder)
    assert any("cannot be used" in notice for notice in progress.notices)
    progress.change("03", "quiz", "q", lambda entry: 1)
    assert progress.lab("03")["quiz"] == {"q": 1}
