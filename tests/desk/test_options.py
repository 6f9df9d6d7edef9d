"""JupyterLab's options: what a learner gives comes last and wins, and nothing is given twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course.desk import home
from course.desk.jupyter_options import value_of, with_others
from course.desk.workspace import jupyter_arguments
from tests.desk.test_workspace import get, started

MINE = Path("/home/ada/my-labs")
IP, ROOT, PAGE = "--ServerApp.ip", "--ServerApp.root_dir", "--LabApp.default_url"


def test_without_options_it_serves_this_machine_only() -> None:
    options = jupyter_arguments(MINE, (), MINE / "START.md")
    assert value_of(IP, options) == "127.0.0.1" and value_of(ROOT, options) == str(MINE)
    assert value_of(PAGE, options) == "/lab/tree/START.md"
    assert not any("token" in option or "password" in option for option in options)


@pytest.mark.parametrize(
    "given", ["--ip=0.0.0.0", "--ip 0.0.0.0", "--ServerApp.ip=0.0.0.0", "--ip=1.2.3.4 --ip=0.0.0.0"]
)
def test_what_comes_last_wins(given: str) -> None:
    options = jupyter_arguments(MINE, given.split())
    assert value_of(IP, options) == "0.0.0.0"
    assert sum(option.partition("=")[0] in ("--ip", IP) for option in options) == 1


def test_flags_and_options_of_many_values_stay_as_they_are() -> None:
    given = ["--no-browser", "--debug", "--port", "9000", "--ServerApp.jpserver_extensions=mine=True", "-y", "--x=1"]
    options = jupyter_arguments(MINE, given)
    assert [option for option in options if "jpserver_extensions" in option][-1] == given[4]
    assert sum("jpserver_extensions" in option for option in options) == 4
    assert options[options.index("--port") + 1] == "9000" and "--no-browser" in options and "--debug" in options
    assert with_others(["--a=1", "-y"], ["--a=2", "--a=3"]) == ["-y", "--a=3"]


def test_on_a_hub_address_and_access_are_the_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_URL", "http://127.0.0.1:1/user/ada/")
    options = jupyter_arguments(MINE, [], MINE / "START.md")
    assert value_of(IP, options) is None and "-y" not in options
    extensions = [option for option in options if "jpserver_extensions" in option]
    assert any("course.desk.server=True" in one for one in extensions)
    assert not any("course.desk.guard" in one for one in extensions)
    assert value_of(ROOT, options) == str(MINE) and value_of(PAGE, options) == "/lab/tree/START.md"


@pytest.mark.parametrize(
    ("root", "page"),
    [("/home/ada", "/lab/tree/my-labs/START.md"), ("/home/ada/my-labs", "/lab/tree/START.md"), ("/srv", None)],
)
def test_the_start_page_is_opened_where_the_root_folder_shows_it(root: str, page: str | None) -> None:
    options = jupyter_arguments(MINE, [f"--ServerApp.root_dir={root}"], MINE / "START.md")
    assert value_of(ROOT, options) == root and value_of(PAGE, options) == page


def test_another_first_page_is_left_alone() -> None:
    options = jupyter_arguments(MINE, ["--ServerApp.default_url=/tree"], MINE / "START.md")
    assert value_of(PAGE, options) == "/tree"


def test_the_real_server_takes_them(tmp_path: Path) -> None:
    """An address and a root folder of one's own: the two that JupyterLab refused as given twice. The token stays."""
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs" / "03_a.ipynb").write_text("{}")
    line = [sys.executable, "-m", "course.desk.workspace", "--labs", str(tmp_path / "labs")]
    line += ["--to", str(tmp_path / "in" / "mine"), "--no-browser", "--port=0"]
    line += ["--ip=0.0.0.0", f"--ServerApp.root_dir={tmp_path / 'in'}"]
    own = {"COURSE_PROGRESS_DIR": str(tmp_path / "progress"), "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime")}
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=os.environ | own) as server:
        try:
            address, token = started(server)
            about = json.loads(next((tmp_path / "runtime").glob("jpserver-*.json")).read_text())
            names = {one["name"] for one in json.loads(get(f"{address}/api/contents?token={token}"))["content"]}
        finally:
            server.terminate()
    assert names == {"mine"} and token
    assert about["hostname"] == "0.0.0.0"


# A home that cannot be written


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A home in which nothing can be made, whoever tries: the superuser may write everywhere else."""
    for name in (*home.jupyter_folders({}), "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/dev/null/home")


def test_a_home_that_can_be_written_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in home.jupyter_folders({}):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home.elsewhere(MINE) == ({}, "") and list(tmp_path.iterdir()) == []


def test_another_place_is_found_for_what_the_home_does_not_take(nowhere: None) -> None:
    moved, sentence = home.elsewhere(MINE)
    assert set(moved) == set(home.jupyter_folders({}))
    assert all(Path(folder).is_relative_to(MINE / ".jupyter") for folder in moved.values())
    assert "cannot be written (Not a directory)" in sentence and str(MINE / ".jupyter") in sentence


def test_a_folder_that_was_asked_for_is_not_replaced(nowhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_PROGRESS_DIR", "/dev/null/mine")
    assert "COURSE_PROGRESS_DIR" not in home.elsewhere(MINE)[0]


def test_the_real_server_starts_without_a_home(nowhere: None, tmp_path: Path) -> None:
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs" / "03_a.ipynb").write_text("{}")
    line = [sys.executable, "-m", "course.desk.workspace", "--labs", str(tmp_path / "labs")]
    line += ["--to", str(tmp_path / "mine"), "--no-browser", "--port=0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path) as server:
        try:
            address, token = started(server)
            names = {one["name"] for one in json.loads(get(f"{address}/api/contents?token={token}"))["content"]}
        finally:
            server.terminate()
        said = server.stdout.read()
    assert names == {"03_a.ipynb", "START.md", "glossary.md"}
    assert "/dev/null/home/" in said and "Traceback" not in said
    assert (tmp_path / "mine" / ".jupyter" / "jupyter_data_dir").is_dir()
