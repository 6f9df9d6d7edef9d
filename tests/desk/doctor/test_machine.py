"""What `course doctor` says of folders, compilers, GPUs and the decode step."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from course.desk.doctor import machine, process

CPU = {
    "has_cupy": False,
    "device": {"kind": "cpu-shim", "name": "a CPU", "versions": {"compiler": "g++ 1"}},
    "is_gpu": False,
    "notes": ["no driver for an NVIDIA or AMD GPU is installed"],
    "why": "",
    "off": 1e-7,
    "allowed": 1e-4,
}
GPU = CPU | {
    "has_cupy": True,
    "device": {"kind": "cuda", "name": "A card", "versions": {"cupy": "14.0", "runtime": "13.0"}},
    "is_gpu": True,
    "notes": [],
}
NUMPY = CPU | {"device": {"kind": "numpy", "name": "a CPU", "versions": {}}}


@pytest.fixture
def asked(monkeypatch):
    """Let the processes answer this: by kind of device, a dict or how they failed."""

    def answer(**answers):
        for one in (machine.best, machine.on_the_cpu):
            one.cache_clear()

        def ask(question: str, kind: str):
            found = answers[kind]
            if isinstance(found, str):
                raise process.ProcessError(found)
            return found

        monkeypatch.setattr(process, "ask", ask)

    yield answer
    for one in (machine.best, machine.on_the_cpu):
        one.cache_clear()


def statuses() -> tuple[str, str, str]:
    return machine.compiler().status, machine.gpu().status, machine.decode_step().status


def test_no_gpu_is_a_note(asked):
    asked(auto=CPU)
    assert statuses() == ("ok", "note", "ok")
    assert machine.gpu().says == "no driver for an NVIDIA or AMD GPU is installed. Labs use the CPU"
    assert machine.decode_step().says == "on a CPU (cpu-shim), equal to NumPy in float64 within 1e-07"


def test_a_gpu_is_told_with_its_versions_and_the_compiler_is_tried_beside_it(asked):
    asked(auto=GPU, cpu=CPU)
    assert statuses() == ("ok", "ok", "ok")
    assert machine.gpu().says == "A card, cupy 14.0, runtime 13.0"
    assert machine.compiler().says == "g++ 1"


def test_neither_gpu_nor_compiler_stops_no_lab(asked):
    none = "there is no C++ compiler on the PATH"
    asked(auto=NUMPY | {"notes": [CPU["notes"][0], none]}, cpu=CPU | {"device": None, "why": none})
    assert statuses() == ("note", "note", "ok")
    assert machine.compiler().says == f"{none}. Kernels run as NumPy instead"


def test_a_gpu_that_cupy_cannot_use_is_a_problem_and_one_without_cupy_is_not(asked):
    why = "there is a GPU and CuPy is installed, but a kernel does not run: busy"
    asked(auto=CPU | {"has_cupy": True, "notes": [why]})
    assert statuses() == ("ok", "problem", "ok") and machine.gpu().says == f"{why}. Labs use the CPU"
    why = "there is an NVIDIA GPU, but CuPy is not installed: `pip install 'cupy-cuda13x[ctk]'`"
    asked(auto=CPU | {"notes": [why]})
    assert statuses() == ("ok", "note", "ok") and why in machine.gpu().says
    asked(auto=CPU | {"has_cupy": True})
    assert machine.gpu().status == "note", "CuPy on a machine without a driver harms nobody"


def test_a_driver_that_hangs_or_crashes_is_a_problem(asked):
    asked(auto="took longer than 90 s", cpu=CPU)
    assert statuses() == ("ok", "problem", "problem")
    assert machine.gpu().says == "looking for a GPU took longer than 90 s"
    asked(auto="was ended by SIGSEGV", cpu="was ended by SIGILL")
    assert statuses() == ("problem", "problem", "problem")


@pytest.mark.parametrize(("off", "said"), [(1e-3, "off by 1.0e-03"), (None, "no number")])
def test_a_step_that_computes_something_else_is_a_problem(asked, off, said):
    asked(auto=CPU | {"off": off})
    assert statuses() == ("problem", "note", "problem")
    assert said in machine.decode_step().says and "float32 explains at most 1.0e-04" in machine.compiler().says


def test_here_the_step_is_right():
    """The real processes, on whatever this machine has."""
    for one in (machine.best, machine.on_the_cpu):
        one.cache_clear()
    assert machine.decode_step().status == "ok"
    assert machine.compiler().status in ("ok", "note") and machine.gpu().status in ("ok", "note", "problem")


def test_without_a_compiler_numpy_takes_over(monkeypatch, tmp_path):
    for one in (machine.best, machine.on_the_cpu):
        one.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    found = machine.compiler()
    assert found.status == "note" and "no C++ compiler on the PATH" in found.says
    assert machine.decode_step().status == "ok"


# Folders


def test_a_folder_that_can_be_written_is_left_as_it_was(tmp_path):
    mine = tmp_path / "a" / "b"
    assert machine.copies(mine).status == "ok" and list(tmp_path.iterdir()) == []
    assert "GB free" in machine.space(mine).says


@pytest.mark.parametrize("place", ["a file", "/dev/null", "x" * 300])
def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path, place):
    (tmp_path / "a file").write_text("")
    found = machine.copies(tmp_path / place / "mine")
    assert found.status == "problem" and "cannot be written: " in found.says and "MY_LABS" in found.do


def test_no_permission_is_a_sentence(tmp_path, monkeypatch):
    def refused(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    assert machine.copies(tmp_path).says == f"{tmp_path} cannot be written: Permission denied"


def test_a_file_that_hides_a_module_is_named(tmp_path):
    for name in ("random.py", "numpy.py", "my_policy.py"):
        (tmp_path / name).write_text("")
    found = machine.copies(tmp_path)
    assert found.status == "problem" and found.says.startswith(f"numpy.py, random.py in {tmp_path} hides ")


def test_a_full_disk_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: SimpleNamespace(free=5e6))
    assert machine.space(tmp_path).says == "5 MB are free, and the labs need 200"


def test_labs_that_are_missing_or_cannot_be_read(tmp_path):
    assert "There are no notebooks" in machine.labs(tmp_path / "gone").says
    (tmp_path / "03_a.ipynb").write_text("x")
    assert machine.labs(tmp_path).status == "ok"
    (tmp_path / "04_b.ipynb").mkdir()
    assert machine.labs(tmp_path).status == "problem"


# Progress: looked at, never touched


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        (None, "ok", "can be written"),
        ('{"schema": 1, "labs": {}}', "ok", "can be written"),
        ("{", "note", "could not be read"),
        ('{"schema": 99, "labs": {}}', "note", "was written by a newer version"),
    ],
)
def test_the_progress_file_is_looked_at_and_left_alone(tmp_path, monkeypatch, content, status, said):
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(tmp_path))
    if content is not None:
        (tmp_path / "progress.json").write_text(content)
    found = machine.progress()
    assert (found.status, said in found.says) == (status, True)
    assert [path.name for path in tmp_path.iterdir()] == ([] if content is None else ["progress.json"])
    assert content is None or (tmp_path / "progress.json").read_text() == content


def test_a_progress_folder_that_cannot_be_used_is_a_problem(tmp_path, monkeypatch):
    (tmp_path / "progress.json").mkdir()
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(tmp_path))
    assert machine.progress().status == "problem" and "COURSE_PROGRESS_DIR" in machine.progress().do
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(tmp_path / "file"))
    assert "cannot be written: Not a directory" in machine.progress().says
