"""Progress: one file that several notebooks share, that survives upgrades, and that is never lost by a bad one."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from course.base import filelock
from course.exercises import progress as module
from course.exercises.progress import Progress
from tests.helpers.sizes import PATIENCE

EMPTY = {"predictions": {}, "tasks": {}, "exercises": {}, "quiz": {}, "boards": {}, "explorers": {}}


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


def test_twenty_writers_at_once_lose_nothing(folder):
    """Processes, as notebooks are; each of them opens, locks, writes and replaces the file thirty times."""
    code = """
import sys
from course.exercises.progress import Progress
mine = Progress(sys.argv[1])
for entry in range(30):
    mine.change("03", "exercises", f"{sys.argv[2]}-{entry}", lambda _old: True)
print(mine.notices)
"""
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(folder), str(number)], stdout=subprocess.PIPE, text=True)
        for number in range(20)
    ]
    said = [writer.communicate(timeout=PATIENCE)[0] for writer in writers]
    assert said == ["[]\n"] * 20
    assert len(Progress(folder).lab("03")["exercises"]) == 600
    assert {path.name for path in folder.iterdir()} == {"progress.json", "progress.lock"}, "a temporary file stayed"


def test_a_lock_that_is_never_given_back_stops_nobody_for_good(folder, monkeypatch):
    monkeypatch.setattr(filelock, "PATIENCE", 0.05)
    folder.mkdir(parents=True)
    with filelock.file_lock(folder / "progress.lock"):
        store(Progress(folder), "little")
        assert list(Progress(folder).lab("03")["exercises"]) == ["little"]


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


def test_unknown_keys_survive(folder):
    write(folder, json.dumps({"schema": 1, "note": "mine", "labs": {"03": {"extra": 1, "exercises": {}}}}))
    store(Progress(folder), "little")
    stored = json.loads((folder / "progress.json").read_text())
    assert stored["note"] == "mine" and stored["labs"]["03"]["extra"] == 1


def test_a_crash_while_writing_leaves_the_old_file(folder, monkeypatch):
    store(Progress(folder), "little")

    def crash(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.files.os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        store(Progress(folder), "capacity")
    monkeypatch.undo()
    assert set(Progress(folder).lab("03")["exercises"]) == {"little"}
    assert {path.name for path in folder.iterdir()} == {"progress.json", "progress.lock"}


def test_a_held_lock_delays_and_never_hangs(folder, monkeypatch):
    from course.base import filelock

    monkeypatch.setattr(filelock, "PATIENCE", 0.05)
    store(Progress(folder), "little")
    with filelock.file_lock(folder / "progress.lock"):
        store(Progress(folder), "capacity")
    assert set(Progress(folder).lab("03")["exercises"]) == {"little", "capacity"}


def test_a_file_system_without_locks_costs_no_time_and_loses_nothing(folder, monkeypatch):
    from course.base import filelock

    calls = []

    def no_locks(_handle):
        calls.append(1)
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock, "_take", no_locks)
    store(Progress(folder), "little")
    assert Progress(folder).lab("03")["exercises"] == {"little": True}
    assert len(calls) == 2, "once for writing, once for reading: a lock that cannot be had is not waited for"


def test_forgetting_a_lab_keeps_a_copy_that_can_be_used(folder, tmp_path):
    progress = Progress(folder)
    assert progress.forget("03", "now") is None and not folder.exists()
    store(progress, "little")
    store(progress, "waste", lab="04")
    kept = progress.forget("03", "2030-01-02_03-04-05")
    assert kept == folder / "progress.lab03-2030-01-02_03-04-05.json"
    assert progress.lab("03") == EMPTY and progress.lab("04")["exercises"] == {"waste": True}
    assert progress.forget("03", "2030-01-02_03-04-05") is None
    store(progress, "capacity")
    assert progress.forget("03", "2030-01-02_03-04-05") == folder / "progress.lab03-2030-01-02_03-04-05-2.json"
    kept.rename(tmp_path / "progress.json")
    assert Progress(tmp_path).lab("03")["exercises"] == {"little": True}
    assert Progress(tmp_path).lab("04") == EMPTY


def test_a_linked_file_is_changed_where_it_lies(tmp_path):
    real, shown = tmp_path / "real", tmp_path / "shown"
    real.mkdir()
    shown.mkdir()
    (shown / "progress.json").symlink_to(real / "progress.json")
    Progress(shown).change("03", "quiz", "q", lambda entry: 1)
    assert (shown / "progress.json").is_symlink()
    assert Progress(real).lab("03")["quiz"] == {"q": 1}
