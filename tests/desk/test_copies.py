"""The learner's copies where something odd lies in the way, and a lab that is started again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from course.desk import copies, workspace
from tests.helpers.odd_files import dangling, endless, pipe
from tests.helpers.sizes import PATIENCE

NOW = datetime(2030, 1, 2, 3, 4, 5)
ASIDE = "03_a_2030-01-02_03-04-05.ipynb"


@pytest.fixture
def labs(tmp_path: Path) -> Path:
    folder = tmp_path / "labs"
    folder.mkdir()
    (folder / "03_a.ipynb").write_text("first")
    (folder / "04_b.ipynb").write_text("second")
    return folder


@pytest.fixture
def mine(labs: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "my-labs"
    copies.copy_labs(labs, folder)
    return folder


ODD = [pipe, endless, dangling, Path.mkdir]


@pytest.mark.parametrize("make", ODD)
def test_a_handed_out_lab_that_is_no_file_is_named_and_the_others_are_copied(labs, tmp_path, make):
    make(labs / "05_c.ipynb")
    copied = copies.copy_labs(labs, tmp_path / "mine")
    assert copied.new == ("03_a.ipynb", "04_b.ipynb")
    (remark,) = copied.report(tmp_path / "mine")[1:]
    assert "05_c.ipynb cannot be copied: " in remark


@pytest.mark.parametrize("make", ODD)
def test_what_has_the_name_of_a_copy_stays_and_is_named(labs, tmp_path, make):
    mine = tmp_path / "mine"
    mine.mkdir()
    make(mine / "03_a.ipynb")
    before = os.lstat(mine / "03_a.ipynb")
    copied = copies.copy_labs(labs, mine)
    assert (copied.new, copied.kept) == (("04_b.ipynb",), ("03_a.ipynb",))
    assert os.path.samestat(os.lstat(mine / "03_a.ipynb"), before)
    assert "03_a.ipynb is not a file" in copied.remarks[0]


def test_an_empty_folder_of_labs_is_said(tmp_path):
    (tmp_path / "labs").mkdir()
    assert "There are no notebooks in" in copies.copy_labs(tmp_path / "labs", tmp_path / "mine").remarks[0]


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"03_a.ipynb": ' + "[" * 900 + "]" * 900 + "}",
        '{"03_a.ipynb": ' + "9" * 4_300 + "}",
        '{"03_a.ipynb": ' + "9" * 5_000 + "}",
        '{"03_a.ipynb": "\\ud800"}',
        " " * (copies.LARGEST_RECORD + 1),
    ],
    ids=range(6),
)
def test_a_hostile_record_stops_nothing(labs, mine, content):
    (mine / copies.RECORD).write_text(content)
    assert copies.copy_labs(labs, mine).new == ()
    (mine / "03_a.ipynb").unlink()
    assert copies.copy_labs(labs, mine).new == ("03_a.ipynb",)
    assert set(json.loads((mine / copies.RECORD).read_text())) == {"03_a.ipynb", "04_b.ipynb"}


@pytest.mark.parametrize("make", [pipe, endless, Path.mkdir])
def test_a_record_that_is_no_file_is_left_alone(labs, mine, make):
    (mine / copies.RECORD).unlink()
    make(mine / copies.RECORD)
    before = os.lstat(mine / copies.RECORD)
    (mine / "03_a.ipynb").unlink()
    copied = copies.copy_labs(labs, mine)
    assert copied.new == ("03_a.ipynb",) and "you will not be told when a lab has changed" in copied.remarks[0]
    assert os.path.samestat(os.lstat(mine / copies.RECORD), before)


def test_a_copy_that_cannot_be_read_stops_nothing(labs, mine, monkeypatch):
    (mine / copies.RECORD).unlink()
    read = copies.files.read

    def refused(path, limit):
        if path == mine / "03_a.ipynb":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, limit)

    monkeypatch.setattr(copies.files, "read", refused)
    assert copies.copy_labs(labs, mine).kept == ("03_a.ipynb", "04_b.ipynb")


# Other names


@pytest.fixture
def renamed(labs: Path, mine: Path) -> Path:
    """A copy made when the deeper notebook of lab 03 was called 03_a_deeper; now it is called 03b_a."""
    (labs / "03_a_deeper.ipynb").write_text("deeper")
    copies.copy_labs(labs, mine)
    (labs / "03_a_deeper.ipynb").rename(labs / "03b_a.ipynb")
    return mine


@pytest.mark.parametrize(
    ("content", "then", "state", "place"),
    [("deeper", "deeper, mended", "pristine", -1), ("deeper, and my notes", "deeper, and my notes", "outdated", -2)],
)
def test_a_copy_with_a_former_name_is_moved_and_nothing_is_lost(labs, renamed, content, then, state, place):
    (renamed / "03_a_deeper.ipynb").write_text(content)
    (labs / "03b_a.ipynb").write_text("deeper, mended")
    copied = copies.copy_labs(labs, renamed)
    assert copied.renamed == (("03_a_deeper.ipynb", "03b_a.ipynb"),) and copied.new == ()
    assert copied.report(renamed)[place].startswith("03_a_deeper.ipynb is called 03b_a.ipynb now")
    assert (renamed / "03b_a.ipynb").read_text() == then
    assert not (renamed / "03_a_deeper.ipynb").exists()
    record = copies.Record(renamed)
    assert copies.state(renamed / "03b_a.ipynb", b"deeper, mended", record) == state
    assert copies.copy_labs(labs, renamed).renamed == ()


def test_a_copy_with_a_former_name_stays_where_the_new_name_is_taken(labs, renamed):
    (renamed / "03_a_deeper.ipynb").write_text("my notes")
    (renamed / "03b_a.ipynb").write_text("mine too")
    assert copies.copy_labs(labs, renamed).renamed == ()
    assert (renamed / "03_a_deeper.ipynb").read_text() == "my notes"
    assert (renamed / "03b_a.ipynb").read_text() == "mine too"


def test_a_former_name_still_means_the_lab(labs, renamed):
    assert copies.find(labs, "03_a_deeper") == copies.find(labs, "03b_a.ipynb") == "03b_a.ipynb"
    assert copies.find(labs, "3") == "03_a.ipynb"


# Starting again


def test_a_reset_keeps_the_old_copy_and_brings_the_newest_lab(labs, mine):
    (mine / "03_a.ipynb").write_text("my answer")
    (labs / "03_a.ipynb").write_text("first, corrected")
    assert copies.reset(labs, mine, "03_a.ipynb", NOW) == (True, mine / ASIDE, [])
    assert (mine / ASIDE).read_text() == "my answer"
    assert (mine / "03_a.ipynb").read_text() == "first, corrected"
    assert copies.copy_labs(labs, mine).report(mine) == []


def test_no_copy_aside_is_overwritten(labs, mine):
    for number in range(3):
        (mine / "03_a.ipynb").write_text(f"answer {number}")
        copies.reset(labs, mine, "03_a.ipynb", NOW)
    stem = ASIDE.removesuffix(".ipynb")
    kept = {name: (mine / f"{stem}{name}.ipynb").read_text() for name in ("", "-2", "-3")}
    assert kept == {"": "answer 0", "-2": "answer 1", "-3": "answer 2"}
    assert len(list(mine.glob("*.ipynb"))) == 5


def test_a_pristine_copy_and_a_missing_one_need_nothing_put_aside(labs, mine):
    assert copies.reset(labs, mine, "03_a.ipynb", NOW) == (False, None, [])
    (mine / "03_a.ipynb").unlink()
    assert copies.reset(labs, mine, "03_a.ipynb", NOW) == (True, None, [])
    assert sorted(path.name for path in mine.glob("*.ipynb")) == ["03_a.ipynb", "04_b.ipynb"]


@pytest.mark.parametrize("make", ODD)
def test_what_is_no_file_is_put_aside_as_it_is(labs, tmp_path, make):
    mine = tmp_path / "mine"
    mine.mkdir()
    make(mine / "03_a.ipynb")
    before = os.lstat(mine / "03_a.ipynb")
    _, aside, _ = copies.reset(labs, mine, "03_a.ipynb", NOW)
    assert os.path.samestat(os.lstat(aside), before)
    assert (mine / "03_a.ipynb").read_text() == "first"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_where_no_fresh_copy_can_be_made_the_old_one_is_back(labs, mine, monkeypatch, error):
    (mine / "03_a.ipynb").write_text("my answer")

    def refused(*_):
        raise error

    monkeypatch.setattr(copies.files, "write_new", refused)
    with pytest.raises((copies.WorkspaceError, KeyboardInterrupt)):
        copies.reset(labs, mine, "03_a.ipynb", NOW)
    assert (mine / "03_a.ipynb").read_text() == "my answer" and not (mine / ASIDE).exists()


def test_where_nothing_can_be_renamed_everything_stays(labs, mine, monkeypatch):
    (mine / "03_a.ipynb").write_text("my answer")
    names = sorted(path.name for path in mine.iterdir())

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(copies.WorkspaceError, match="Permission denied"):
        copies.reset(labs, mine, "03_a.ipynb", NOW)
    assert (mine / "03_a.ipynb").read_text() == "my answer"
    assert sorted(path.name for path in mine.iterdir()) == names


@pytest.mark.parametrize("text", ["3", "03", " 03 ", "03_a", "03_a.ipynb", "my-labs/03_a.ipynb"])
def test_a_lab_has_a_number_and_a_name(labs, text):
    assert copies.find(labs, text) == "03_a.ipynb"


@pytest.mark.parametrize("text", ["", "0", "5", "a", "03_", "*", "..", "03_a.py", "\u0663", "9" * 5_000, "x\ny"])
def test_an_unknown_lab_names_the_known_ones(labs, text):
    with pytest.raises(ValueError, match=r"is no lab: choose from 03_a.ipynb, 04_b.ipynb"):
        copies.find(labs, text)


def test_a_number_that_two_labs_share_needs_the_name(labs):
    (labs / "03_z.ipynb").write_text("third")
    with pytest.raises(ValueError, match=r"'3' is more than one lab: choose from 03_a.ipynb, 03_z.ipynb"):
        copies.find(labs, "3")
    assert copies.find(labs, "03_z") == "03_z.ipynb"


# Where they are


def test_the_folders(labs, tmp_path, monkeypatch):
    monkeypatch.delenv("MY_LABS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert copies.folders() == (labs, tmp_path / "my-labs")
    assert copies.folders(None, "x") == (labs, tmp_path / "x")
    monkeypatch.setenv("MY_LABS", "batching")
    assert copies.folders() == (labs, tmp_path / "batching")
    (tmp_path / "batching").mkdir()
    monkeypatch.chdir(tmp_path / "batching")  # where a terminal in JupyterLab opens
    assert copies.folders(str(labs)) == (labs, tmp_path / "batching")
    with pytest.raises(copies.WorkspaceError, match=r"No folder .*start this in the course's folder"):
        copies.folders(str(tmp_path / "gone"))
    with pytest.raises(copies.WorkspaceError, match="is not the name of a folder"):
        copies.folders(str(labs), "~nosuchuser/x")


def test_an_empty_name_is_none(labs, tmp_path, monkeypatch):
    """As from a variable of the shell that is not set: the copies must not land in the folder we are in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_LABS", "")
    assert copies.folders("", "") == (labs, tmp_path / "my-labs")
    assert workspace.main(["--labs", str(labs), "--to", "", "--copy-only"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labs", "my-labs"]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere the folder we are in cannot be removed")
def test_where_the_folder_we_are_in_is_gone(labs, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("MY_LABS", "")
    assert copies.folders(str(labs)) == (labs, tmp_path / "my-labs")
    with pytest.raises(copies.WorkspaceError, match="x is not the name of a folder: No such file or directory"):
        copies.folders(str(labs), "x")


def test_a_folder_whose_name_is_no_text(labs, tmp_path, monkeypatch, capfd):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/mine\xff")
    line = [sys.executable, "-m", "course.desk.workspace", "--copy-only", "--labs", str(labs), "--to", odd]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, env=env)
    if done.returncode:
        assert "Your copies of the labs cannot be kept" in done.stderr  # a file system that takes text only
    else:
        assert done.stdout == "New in mine\\udcff/: 03_a.ipynb, 04_b.ipynb\n"


def test_a_jupyterlab_that_is_not_there_is_a_sentence(labs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    assert workspace.main(["--labs", str(labs), "--to", str(tmp_path / "mine")]) == 1
    assert "JupyterLab cannot be started" in capsys.readouterr().err
