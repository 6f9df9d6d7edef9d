"""`course doctor` as it is typed: lines, JSON, the code, the exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import course.desk.doctor
from course.cli import app
from course.desk.doctor import ITEMS, statuses_of
from course.desk.doctor.answer import note, ok, problem
from tests.helpers.sizes import PATIENCE

CHECKING = f"checking {len(ITEMS)} items; starting a kernel takes longest, up to a minute ...\n"
COMMAND = [sys.executable, "-c", "from course.cli import main; main()", "doctor"]


def call(*args: object):
    return CliRunner().invoke(app, ["doctor", *map(str, args)])


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch):
    """Let the items have these answers, and be ok otherwise."""

    def give(**some):
        found = {name: some.get(name.replace(" ", "_"), ok("fine")) for name in ITEMS}
        monkeypatch.setattr(course.desk.doctor, "examine", lambda *_: iter(found.items()))

    return give


def test_all_ok(answers):
    answers()
    result = call()
    lines = result.stdout.splitlines()
    assert result.exit_code == 0 and len(lines) == len(ITEMS) + 1
    assert lines[0] == "ok       python       fine"
    assert lines[-1] == "The labs will run. Code for the instructor: D1-00000"


def test_a_note_stops_no_lab(answers):
    answers(gpu=note("no driver\nhere", "nothing"))
    result = call()
    assert result.exit_code == 0
    assert "note     gpu          no driver here. To do: nothing" in result.stdout.splitlines()
    assert result.stdout.endswith("The labs will run. Code for the instructor: D1-0003F\n")


def test_a_problem_has_status_one(answers):
    answers(widgets=problem("broken", "mend it"), python=problem("old"))
    result = call()
    assert result.exit_code == 1 and result.stderr == CHECKING
    assert result.stdout.splitlines()[-1].startswith("Look at: python, widgets. Code for the instructor: D1-")
    found = json.loads(call("--json").stdout)
    assert found["ok"] is False and call("--json").exit_code == 1
    assert found["items"][3] == {"name": "widgets", "status": "problem", "says": "broken", "do": "mend it"}
    assert statuses_of(found["code"]) == {item["name"]: item["status"] for item in found["items"]}


def test_a_code_is_explained_without_looking_at_this_machine(monkeypatch):
    def nothing(*_):
        raise AssertionError("looked")

    monkeypatch.setattr(course.desk.doctor, "examine", nothing)
    assert call("--explain", "d1-ooo3f").stdout == "d1-ooo3f  note: gpu\n"
    assert call("--explain", "D1-00000, D1-J000J").stdout == "D1-00000  all ok\nD1-J000J  problem: python\n"
    assert json.loads(call("--explain", "D1-0003F", "--json").stdout)["D1-0003F"]["gpu"] == "note"


@pytest.mark.parametrize("code", ["", " ", "D1-0003E", "hello", "D1-00000,D9-00000"])
def test_a_wrong_code_is_one_sentence(code):
    result = call("--explain", code)
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.startswith("course: ") and len(result.stderr.splitlines()) == 1


def test_here_as_a_process(root: Path, tmp_path: Path):
    """In the environment of the tests all that the machine does not decide is ok, and nothing is left behind."""
    env = {**os.environ, "COURSE_PROGRESS_DIR": str(tmp_path / "progress"), "MY_LABS": str(tmp_path / "mine")}
    done = subprocess.run([*COMMAND, "--json"], cwd=root, env=env, capture_output=True, text=True, timeout=PATIENCE)
    found = json.loads(done.stdout)
    statuses = {item["name"]: item["status"] for item in found["items"]}
    assert list(statuses) == list(ITEMS) and statuses_of(found["code"]) == statuses
    assert {name: statuses[name] for name in ITEMS[:8]} == dict.fromkeys(ITEMS[:8], "ok"), done.stdout
    assert done.returncode == ("problem" in statuses.values()) and done.stderr == CHECKING
    assert list(tmp_path.iterdir()) == []


def test_where_numpy_is_broken_it_says_so(root: Path, tmp_path: Path):
    (tmp_path / "numpy.py").write_text("raise ImportError('libopenblas.so.0: cannot open')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "COURSE_PROGRESS_DIR": str(tmp_path)}
    done = subprocess.run(COMMAND, cwd=root, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and done.stderr == CHECKING and "Traceback" not in done.stdout
    lines = {line[9:22].strip(): line for line in done.stdout.splitlines()}
    assert (
        lines["imports"].startswith("problem") and "numpy cannot be imported: ImportError: libopen" in lines["imports"]
    )
    assert lines["python"].startswith("ok") and lines["progress"].startswith("ok")
    for name in ("compiler", "gpu", "decode step"):
        assert (
            lines[name].startswith("problem")
            and "cannot be checked because a module is missing: libopen" in lines[name]
        )
