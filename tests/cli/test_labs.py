"""`course labs` and `course reset`: the learner's standing, and a fresh start that loses nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from course.base import files
from course.cli import app
from course.desk import catalogue
from course.exercises import Lab, minutes
from course.exercises.names import is_deeper
from course.exercises.progress import Progress
from course.lessons import load
from course.notebooks import catalogue as from_the_labs
from tests.helpers.sizes import PATIENCE

NAME = "03_littles_law.ipynb"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> Path:
    """The learner's folder; progress and copies are the test's own."""
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(tmp_path / "progress"))
    monkeypatch.setenv("MY_LABS", str(tmp_path / "mine"))
    monkeypatch.chdir(root)
    return tmp_path / "mine"


def call(*args: object):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def listed(*args: object) -> dict:
    result = call("labs", "--json", *args)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def lab_three() -> dict:
    return next(row for row in listed()["labs"] if row["lab"] == "03")


def answer_something() -> None:
    lab = Lab("03", Progress(), show=False)
    spec = lab.spec
    lab.check(spec.exercises[0].id, spec.exercises[0].solution)
    lab.check(spec.exercises[1].id, -1)
    lab.predict(spec.predictions[1].id, "a")  # the first is drawn


def test_every_handed_out_lab_is_listed_with_its_minutes(mine, root):
    found = listed()
    assert [row["file"] for row in found["labs"]] == sorted(path.name for path in (root / "labs").glob("*.ipynb"))
    for row in found["labs"]:
        spec, deeper = load(row["lab"]), is_deeper(row["file"])
        title = f"{spec.title}, deeper (optional)" if deeper else spec.title
        count = minutes.stored(row["lab"], "deeper" if deeper else "core")
        assert (row["title"], row["minutes"], row["copy"]) == (title, count, "none")
        if deeper:
            continue
        assert row["done"]["exercises"] == {"done": 0, "of": len(spec.exercises)}
    assert found["copies"] == str(mine) and not mine.exists()
    assert found["notes"] == []


def test_progress_is_counted(mine):
    answer_something()
    spec, row = load("03"), lab_three()
    assert row["done"] == {
        "predictions": {"done": 1, "of": len(spec.predictions)},
        "tasks": {"done": 0, "of": len(spec.tasks)},
        "exercises": {"done": 1, "of": len(spec.exercises)},
        "quiz": {"done": 0, "of": len(spec.quiz)},
    }
    table = call("labs").stdout
    assert f"03  {spec.title}, {minutes.stored('03')} minutes\n" in table
    tasks = f"0 of {len(spec.tasks)} tasks"
    assert f"done: 1 of {len(spec.predictions)} predictions, {tasks}, 1 of {len(spec.exercises)} exercises" in table


def test_the_state_of_a_copy(mine, root):
    assert call("reset", "03").exit_code == 0
    assert lab_three()["copy"] == "pristine"
    (mine / NAME).write_text("my answer")
    assert lab_three()["copy"] == "yours"
    record = json.loads((mine / ".handed-out.json").read_text())
    (mine / ".handed-out.json").write_text(json.dumps({**record, NAME: "0" * 64}))
    assert lab_three()["copy"] == "outdated"
    assert "the handed-out lab has changed since" in call("labs").stdout
    (mine / NAME).unlink()
    (mine / NAME).mkdir()
    (mine / ".handed-out.json").unlink()
    assert lab_three()["copy"] == "unreadable"


def test_a_notebook_that_the_catalogue_does_not_know_hides_no_other(mine, monkeypatch):
    known = catalogue.catalogue()
    monkeypatch.setattr(catalogue, "catalogue", lambda: {number: known[number] for number in known if number != "03"})
    result = call("labs")
    assert result.exit_code == 0 and f"03  {NAME}\n" in result.stdout and f"04  {known['04'].title}," in result.stdout


def test_the_catalogue_is_what_the_labs_ask():
    """`make notebooks` writes it; a lab that asks something else must not be counted by the old list."""
    assert json.loads(catalogue.FILE.read_text()) == from_the_labs.entries()


@pytest.mark.parametrize("line", [["labs"], ["reset", "03"]])
def test_they_load_no_lab(mine, line):
    """NumPy, SciPy and plotly take seconds to import on a slow machine, and none of them lists a folder."""
    code = """
import sys
from course.base import files
from course.cli import app
from course.desk import catalogue
try:
    app(sys.argv[1:])
finally:
    print(sorted({"numpy", "scipy", "plotly", "IPython", "ipywidgets"}.intersection(sys.modules)))
"""
    answer_something()
    done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "[]"
    assert "1 of " in done.stdout


def test_a_deeper_notebook_has_a_row_of_its_own_and_shares_no_number(mine, tmp_path, root):
    labs = tmp_path / "labs"
    labs.mkdir()
    for name in (NAME, "03b_littles_law.ipynb"):
        (labs / name).write_bytes((root / "labs" / NAME).read_bytes())
    rows = listed("--labs", labs)["labs"]
    assert [(row["file"], row["minutes"]) for row in rows] == [
        (NAME, minutes.stored("03")),
        ("03b_littles_law.ipynb", minutes.stored("03", "deeper")),
    ]
    assert rows[1]["title"].endswith("deeper (optional)") and rows[1]["done"] is None
    assert call("reset", "03", "--labs", labs).stdout.startswith(f"A fresh copy: {mine / NAME}")


def test_a_corrupt_progress_file_is_a_note(mine, tmp_path):
    (tmp_path / "progress").mkdir()
    (tmp_path / "progress" / "progress.json").write_text("{")
    result = call("labs")
    assert result.exit_code == 0 and "It is kept as progress.corrupt-1.json" in result.stderr


def test_reset_keeps_the_copy_and_says_where(mine, root):
    call("reset", 3)
    (mine / NAME).write_text("my answer")
    result = call("reset", "03")
    assert result.exit_code == 0
    kept = Path(re.search(r"Yours is kept as: (.*)", result.stdout)[1])
    assert kept.read_text() == "my answer"
    assert re.fullmatch(r"03_littles_law_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.ipynb", kept.name)
    assert (mine / NAME).read_bytes() == (root / "labs" / NAME).read_bytes()
    assert f"{mine / NAME} is as it was handed out: nothing to reset." in call("reset", NAME).stdout


def test_reset_leaves_progress_unless_it_is_asked_for(mine, tmp_path):
    answer_something()
    before = (tmp_path / "progress" / "progress.json").read_bytes()
    result = call("reset", "03")
    assert "Your progress is kept: 1 of " in result.stdout
    assert (tmp_path / "progress" / "progress.json").read_bytes() == before
    result = call("reset", "03", "--progress")
    kept = Path(re.search(r"A copy is kept as: (.*)", result.stdout)[1])
    assert json.loads(kept.read_bytes()) == json.loads(before)
    assert lab_three()["done"]["exercises"]["done"] == 0
    assert "There is no progress of lab 03 to forget." in call("reset", "03", "--progress").stdout


def test_reset_to_another_folder(mine, tmp_path):
    assert call("reset", "03", "--to", tmp_path / "other").exit_code == 0
    assert (tmp_path / "other" / NAME).is_file() and not mine.exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["reset", "99"], "'99' is no lab: choose from 00_how_a_model_answers.ipynb, "),
        (["reset", "../labs"], "is no lab: choose from"),
        (["reset"], "Missing argument"),
        (["reset", "03", "--to", "/dev/null/x"], "Your copies of the labs cannot be kept in /dev/null/x"),
        (["reset", "03", "--to", "~nosuchuser/x"], "is not the name of a folder"),
        (["labs", "--labs", "nowhere"], "No folder "),
        (["labs", "--to", "~nosuchuser/x"], "is not the name of a folder"),
    ],
)
def test_bad_input_is_one_sentence(mine, line, said):
    result = call(*line)
    assert result.exit_code == 2 and result.stdout == ""
    assert said in result.stderr and len(result.stderr.splitlines()) == 1


def test_progress_that_cannot_be_forgotten_leaves_the_copy(mine, tmp_path):
    call("reset", "03")
    (mine / NAME).write_text("my answer")
    (tmp_path / "progress" / "progress.json").mkdir(parents=True)
    result = call("reset", "03", "--progress")
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.startswith("course: ") and "is a folder, not a file" in result.stderr
    assert (mine / NAME).read_text() == "my answer" and len(list(mine.glob("*.ipynb"))) == 1


@pytest.mark.parametrize("before", ["my answer", None])
def test_a_disk_that_is_full_when_progress_is_forgotten_changes_nothing(mine, tmp_path, monkeypatch, before):
    """There is space for the fresh copy, and none for the progress that is written after it."""
    answer_something()
    if before:
        call("reset", "03")
        (mine / NAME).write_text(before)
    stored = (tmp_path / "progress" / "progress.json").read_bytes()
    write_new = files.write_new

    def full(path, content):
        if path.suffix == ".json":
            raise OSError(28, "No space left on device", str(path))
        write_new(path, content)

    monkeypatch.setattr(files, "write_new", full)
    result = call("reset", "03", "--progress")
    assert result.exit_code == 2 and "No space left on device" in result.stderr and result.stdout == ""
    assert [path.read_text() for path in mine.glob("*.ipynb")] == ([before] if before else [])
    assert (tmp_path / "progress" / "progress.json").read_bytes() == stored


def test_a_copy_of_an_older_version_that_nobody_changed(mine, tmp_path, root):
    labs = tmp_path / "labs"
    labs.mkdir()
    (labs / NAME).write_bytes((root / "labs" / NAME).read_bytes())
    call("reset", "03", "--labs", labs)
    (labs / NAME).write_bytes((root / "labs" / NAME).read_bytes().replace(b"Little", b"little"))
    (row,) = listed("--labs", labs)["labs"]
    assert row["copy"] == "old"
    assert "`make lab` copies the newer version" in call("labs", "--labs", labs).stdout
