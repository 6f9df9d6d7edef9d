"""Progress: one file that several notebooks share, that survives upgrades, and that is never lost by a bad one."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from course.exercises import progress as module
from course.exercises.progress import SCHEMA, Progress

EMPTY = {"predictions": {}, "exercises": {}, "quiz": {}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "course" / "data"


def store(progress: Progress, name: str, value: object = True, lab: str = "03") -> None:
    progress.change(lab, "exercises", name, lambda _old: value)


def write(folder: Path, text: str | bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "progress.json").write_bytes(text if isinstance(text, bytes) else text.encode())


def test_remembers_across_objects(folder):
    store(Progress(folder), "little", {"done": True})
    assert Progress(folder).lab("03") == {**EMPTY, "exercises": {"little": {"done": True}}}
    assert Progress(folder).lab("04") == EMPTY


def test_an_empty_start_writes_nothing(folder):
    assert Progress(folder).lab("03") == EMPTY
    assert not folder.exists()


def test_an_edit_sees_the_entry_before(folder):
    first = Progress(folder)
    for _ in range(3):
        first.change("03", "predictions", "p99", lambda old: [*(old or []), "b"])
    assert Progress(folder).lab("03")["predictions"]["p99"] == ["b", "b", "b"]


def test_what_is_returned_is_a_copy(folder):
    store(Progress(folder), "little", {"done": True})
    first = Progress(folder)
    first.lab("03")["exercises"]["little"]["done"] = False
    assert first.lab("03")["exercises"]["little"]["done"] is True


def test_the_folder_comes_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(folder))
    store(Progress(), "little")
    assert (folder / "progress.json").exists()
    monkeypatch.delenv("COURSE_PROGRESS_DIR")
    monkeypatch.setenv("HOME", str(folder))
    assert "llm-batching-course" in str(Progress().path)


def test_two_open_notebooks_keep_each_others_entries(folder):
    one, two = Progress(folder), Progress(folder)
    one.lab("03"), two.lab("03")
    store(one, "little")
    store(two, "capacity")
    store(one, "burst")
    assert set(Progress(folder).lab("03")["exercises"]) == {"little", "capacity", "burst"}


def test_many_writers_at_once_lose_nothing(folder):
    def work(writer: int) -> None:
        mine = Progress(folder)
        for entry in range(10):
            store(mine, f"{writer}-{entry}")

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Progress(folder).lab("03")["exercises"]) == 40
    assert {path.name for path in folder.iterdir()} == {"progress.json", "progress.lock"}, "a temporary file stayed"


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
    ],
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


def test_an_older_file_is_migrated(folder, monkeypatch):
    store(Progress(folder), "little", 1)

    def to_two(state):
        for lab in state["labs"].values():
            lab["exercises"] = {name: {"done": bool(value)} for name, value in lab["exercises"].items()}
        return state

    def to_three(state):
        state["labs"] = {f"lab{number}": lab for number, lab in state["labs"].items()}
        return state

    monkeypatch.setattr(module, "SCHEMA", 3)
    monkeypatch.setattr(module, "MIGRATIONS", {1: to_two, 2: to_three})
    progress = Progress(folder)
    assert progress.lab("lab03")["exercises"] == {"little": {"done": True}}
    store(progress, "capacity", lab="lab03")
    stored = json.loads((folder / "progress.json").read_text())
    assert stored["schema"] == 3 and set(stored["labs"]["lab03"]["exercises"]) == {"little", "capacity"}
    assert not progress.notices


def test_a_migration_that_fails_keeps_the_file(folder, monkeypatch):
    store(Progress(folder), "little")
    monkeypatch.setattr(module, "SCHEMA", 2)
    assert Progress(folder).lab("03") == EMPTY
    assert (folder / "progress.corrupt-1.json").exists()


def test_unknown_keys_survive(folder):
    write(folder, json.dumps({"schema": 1, "note": "mine", "labs": {"03": {"extra": 1, "exercises": {}}}}))
    store(Progress(folder), "little")
    stored = json.loads((folder / "progress.json").read_text())
    assert stored["note"] == "mine" and stored["labs"]["03"]["extra"] == 1


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

    monkeypatch.setattr(module.tempfile, "mkstemp", refused)
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

    monkeypatch.setattr(Path, "rename", refused)
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


def test_a_crash_while_writing_leaves_the_old_file(folder, monkeypatch):
    store(Progress(folder), "little")

    def crash(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        store(Progress(folder), "capacity")
    monkeypatch.undo()
    assert set(Progress(folder).lab("03")["exercises"]) == {"little"}
    assert {path.name for path in folder.iterdir()} == {"progress.json", "progress.lock"}


def test_a_held_lock_delays_and_never_hangs(folder, monkeypatch):
    from course.exercises import filelock

    monkeypatch.setattr(filelock, "PATIENCE", 0.05)
    store(Progress(folder), "little")
    with filelock.locked(folder / "progress.lock"):
        store(Progress(folder), "capacity")
    assert set(Progress(folder).lab("03")["exercises"]) == {"little", "capacity"}


@pytest.mark.parametrize("folder", ["/tmp/" + "a" * 300, "~nosuchuser/x"])
def test_a_folder_that_cannot_be_named_is_a_notice_and_the_lab_goes_on(folder):
    progress = Progress(folder)
    assert any("cannot be used" in notice for notice in progress.notices)
    progress.change("03", "quiz", "q", lambda entry: 1)
    assert progress.lab("03")["quiz"] == {"q": 1}


def test_a_linked_file_is_changed_where_it_lies(tmp_path):
    real, shown = tmp_path / "real", tmp_path / "shown"
    real.mkdir()
    shown.mkdir()
    (shown / "progress.json").symlink_to(real / "progress.json")
    Progress(shown).change("03", "quiz", "q", lambda entry: 1)
    assert (shown / "progress.json").is_symlink()
    assert Progress(real).lab("03")["quiz"] == {"q": 1}
