"""The checks of `course doctor`, each with something broken: a sentence, in time, and never a traceback."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from course.desk.doctor import ITEMS, examine, machine, process, repair, report, software
from course.desk.doctor.answer import ok
from tests.helpers.sizes import PATIENCE


@pytest.fixture(autouse=True)
def fresh():
    """What a check remembers is forgotten before and after each test."""
    for asked in (software.try_imports, machine.best, machine.on_the_cpu):
        asked.cache_clear()
    yield
    for asked in (software.try_imports, machine.best, machine.on_the_cpu):
        asked.cache_clear()


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Put a module of this name in front of the real one, in every process that is started."""

    def put(name: str, source: str) -> None:
        folder = tmp_path / "in front"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return put


# Python and packages


def test_this_environment_is_within_its_bounds():
    assert software.python().status == software.packages().status == "ok"


def test_the_bounds_of_a_wheel_are_those_of_the_project(tmp_path, monkeypatch):
    python, packages = software.bounds()
    monkeypatch.setattr(software, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    wheel_python, wheel_packages = software.bounds()
    assert set(wheel_python.split(",")) == set(python.split(","))
    assert sorted(wheel_packages) == sorted(packages)


def test_what_is_out_of_bounds_is_named(monkeypatch):
    wanted = ["numpy>=999", "no-such-package>=1", "rich>=1"]
    monkeypatch.setattr(software, "bounds", lambda: (">=9", wanted))
    assert software.python().status == "problem" and "the course needs >=9" in software.python().says
    found = software.packages()
    assert found.status == "problem" and "`make lab`" in found.do
    assert "numpy is " in found.says and "the course needs >=999" in found.says
    assert "no-such-package is not installed" in found.says and "rich" not in found.says


@pytest.fixture
def few(monkeypatch):
    """Two modules are enough to see how a failure is told."""
    monkeypatch.setattr(software, "MODULES", ("scipy", "anywidget"))


def test_a_package_that_cannot_be_imported_is_named_with_the_reason(broken, few):
    """Whatever other modules print meanwhile: it is not taken for the answer."""
    broken("scipy", "raise ImportError('libopenblas.so.0: cannot open shared object file\\nmore')")
    broken("anywidget", "print('[\"hello')")
    found = software.imports()
    assert found.status == "problem"
    assert found.says == "scipy cannot be imported: ImportError: libopenblas.so.0: cannot open shared object file"


@pytest.mark.skipif(os.name != "posix", reason="ends by a signal")
def test_a_package_that_crashes_python_is_named(broken, few):
    broken("scipy", "import os; os.abort()")
    found = software.imports()
    assert found.status == "problem" and "was ended by SIGABRT" in found.says
    assert software.widgets() == found, "asked once, and no wiser"


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has buried yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_one_that_hangs_is_ended_with_all_that_it_started(broken, tmp_path, monkeypatch):
    source = f"""
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
time.sleep(600)
"""
    broken("numpy", source)
    monkeypatch.setattr(process, "SECONDS", 3)
    assert software.imports().says == "importing the packages took longer than 3 s (importing numpy)"
    pid = int((tmp_path / "pid").read_text())
    for _ in range(10 * PATIENCE):
        if gone(pid):
            break
        time.sleep(0.1)
    assert gone(pid)


# Widgets and kernel


def test_halves_that_do_not_fit_are_named(monkeypatch):
    versions = {"ipywidgets": "8.1.9", "jupyterlab_widgets": "1.1.0"}
    monkeypatch.setattr(software, "version_of", versions.get)
    found = software.widgets()
    assert found.status == "problem" and "ipywidgets 8.1.9 needs jupyterlab_widgets" in found.says
    assert "not 1.1.0" in found.says
    del versions["jupyterlab_widgets"]
    assert "jupyterlab_widgets is not installed" in software.widgets().says


def test_an_older_extension_in_front_of_ours_is_named(tmp_path, monkeypatch, few):
    folder = tmp_path / "labextensions" / "anywidget"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": "anywidget", "version": "0.0.1", "jupyterlab": {}}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    found = software.widgets()
    assert found.status == "problem" and f"{folder} has anywidget 0.0.1 and hides " in found.says


def test_an_extension_that_is_switched_off_is_named(tmp_path, monkeypatch, few):
    (tmp_path / "labconfig").mkdir()
    page = {"disabledExtensions": {"@jupyter-widgets/jupyterlab-manager": True}}
    (tmp_path / "labconfig" / "page_config.json").write_text(json.dumps(page))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    found = software.widgets()
    assert found.status == "problem"
    assert found.says == "the lab extension @jupyter-widgets/jupyterlab-manager is switched off"
    assert found.do == "`jupyter labextension enable @jupyter-widgets/jupyterlab-manager`"


@pytest.mark.parametrize("name", software.WIDGETS)
def test_an_extension_that_is_not_there_is_named(monkeypatch, name):
    there = {other: ["", ""] for other in software.WIDGETS if other != name}
    answer = {"why_no_extensions": "", "extensions": {"found": there, "off": []}}
    monkeypatch.setattr(software, "try_imports", lambda: answer)
    monkeypatch.setattr(software, "_own", lambda name: None)
    found = software.widgets()
    assert f"the lab extension {name} of " in found.says
    # Its package counts as installed, so nothing but installing its files again puts them back.
    package = software.WIDGETS[name]
    assert found.do.endswith(f"-m pip install --force-reinstall --no-deps {package}=={repair.version_of(package)}`")


def test_repair_goes_by_what_is_installed(tmp_path, monkeypatch):
    assert "rm -f" in repair.install() and ".installed" in repair.install() and "`make lab`" in repair.install()
    assert repair.files_of("numpy", "no-such-package") == repair.install()  # what is missing is not reinstalled
    monkeypatch.setattr(repair, "FOLDER", tmp_path)  # installed from a wheel: there is no Makefile
    pip = f"`{shlex.quote(sys.executable)} -m pip install --force-reinstall "
    wheel = tmp_path / "a folder" / "llm_batching_course-1-py3-none-any.whl"
    wheel.parent.mkdir()
    unknown = "WHEEL` with the course's wheel in the place of `WHEEL`"
    for text, there, advice in (
        (json.dumps({"url": wheel.as_uri()}), True, f"{shlex.quote(str(wheel))}`"),
        (json.dumps({"url": wheel.as_uri()}), False, unknown),
        (
            json.dumps({"url": "https://somewhere/else.whl"}),
            True,
            unknown,
        ),
        ("[]", True, unknown),
        ("{", True, unknown),
        (None, True, unknown),
    ):
        wheel.unlink(missing_ok=True)
        if there:
            wheel.touch()
        installed = type("Installed", (), {"read_text": lambda self, name, text=text: text})()
        monkeypatch.setattr(repair.metadata, "distribution", lambda name, one=installed: one)
        assert repair.install() == pip + advice


def kernelspec(folder: Path, *argv: str) -> None:
    spec = folder / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(json.dumps({"argv": [*argv], "display_name": "x", "language": "python"}))


def test_a_kernel_that_cannot_start_is_a_sentence(tmp_path, monkeypatch):
    kernelspec(tmp_path, "/no/such/python", "-m", "ipykernel_launcher", "-f", "{connection_file}")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    found = software.kernel(tmp_path)
    assert found.status == "problem" and "starting a kernel ended with status 1 (" in found.says


@pytest.mark.skipif(os.name != "posix", reason="makes a virtual environment by hand")
def test_a_kernel_of_another_python_is_named(tmp_path, monkeypatch):
    """A Python with its own prefix that finds the same packages."""
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (other / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    kernelspec(tmp_path, str(other / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    found = software.kernel(tmp_path)
    assert found.status == "problem" and f"another Python, that of {other}" in found.says
    assert str(tmp_path / "kernels" / "python3") in found.do


# The whole


def test_a_check_that_fails_is_an_answer(monkeypatch):
    def missing():
        raise ModuleNotFoundError("No module named 'packaging'")

    def wrong():
        raise KeyError("a bug\nin two lines")

    def refused():
        raise PermissionError(13, "Permission denied", "/x")

    for check, said in (
        (missing, "a module is missing: No module named 'packaging'"),
        (wrong, "cannot be checked: KeyError: 'a bug\\nin two lines'"),
        (refused, "/x: Permission denied"),
    ):
        answer = report._answer_of(check)
        assert answer.status == "problem" and said in answer.says


def test_every_item_is_answered_in_the_order_of_the_code(monkeypatch, tmp_path):
    for room in (software, machine):
        for name in ("python", "packages", "imports", "widgets", "kernel", "labs", "copies", "progress", "space"):
            if hasattr(room, name):
                monkeypatch.setattr(room, name, lambda *_: ok("fine"))
    monkeypatch.setattr(process, "ask", lambda *_: {"why": "nothing", "device": None, "notes": [], "has_cupy": False})
    assert [name for name, _ in examine(None, str(tmp_path))] == list(ITEMS)
