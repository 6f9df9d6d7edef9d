"""Odd sources and odd stored notebooks: every fault is a sentence, nothing hangs, and nothing half-written is left."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course.notebooks import build as module
from course.notebooks.__main__ import main
from course.notebooks.build import Target, build, run_target, sources
from course.notebooks.execute import ExecutionError
from course.notebooks.source import SourceError, notebooks, parse, read
from tests.helpers.odd_files import dangling, endless, pipe
from tests.helpers.sizes import PATIENCE
from tests.helpers.small_lab import SMALL, code


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "solutions").mkdir()
    return tmp_path


def looked_at(project: Path, content: bytes | None = None) -> list[str]:
    """The faults of the one source, without running it."""
    if content is not None:
        (project / "solutions" / "07_x.py").write_bytes(content)
    return build(project, write=False, run=False)


# Sources


BAD = {
    "# %%\n# caf\xe9\n".encode("latin-1"): "line 2: byte 0xe9 is not UTF-8; save the file as UTF-8",
    SMALL.encode("utf-16"): "line 1: byte 0xff is not UTF-8",
    b"# %% tags=5\n1\n": "jupytext cannot read it",
    b'# %% tags={"a": 1}\n1\n': "jupytext cannot read it",
    b"# %% tags=[1]\n1\n": "jupytext cannot read it",
    b'# %% slideshow=["x"]\n1\n': "cell 0: slideshow is ['x']; write a list such as tags=",
    b"": "heading '## The question' is missing",
    b"\n\n": "heading '## The question' is missing",
    SMALL.replace("    ### END SOLUTION\n", "", 1).encode(): "cell 5: '### BEGIN SOLUTION' without '### END SOLUTION'",
    SMALL.replace(
        "    ### BEGIN SOLUTION\n", "", 1
    ).encode(): "cell 5: '### END SOLUTION' without '### BEGIN SOLUTION'",
    SMALL.replace("    # L =", "    ### BEGIN SOLUTION\n    # L =").encode(): "cell 5: a second '### BEGIN SOLUTION'",
    SMALL.replace("# How many?", "# ### BEGIN SOLUTION").encode(): "is in a text cell; only code can be hidden",
    SMALL.replace("# How many?", "### BEGIN SOLUTION").encode(): "'## BEGIN SOLUTION' looks like a marker",
}


@pytest.mark.parametrize("content", BAD, ids=range(len(BAD)))
def test_an_odd_source_is_a_fault_that_names_it(project, content):
    faults = looked_at(project, content)
    assert any(fault.startswith("solutions/07_x.py: ") and BAD[content] in fault for fault in faults), faults


@pytest.mark.parametrize("make", [pipe, endless, dangling, Path.mkdir])
def test_a_source_that_is_no_file_is_a_fault_and_the_others_are_looked_at(project, make):
    make(project / "solutions" / "05_y.py")
    faults = looked_at(project, SMALL.encode())
    assert faults[0].startswith("solutions/05_y.py: cannot be read: ")
    assert "labs/07_x.ipynb: missing; `make notebooks` builds it" in faults


def test_line_ends_and_a_byte_order_mark_change_nothing(project):
    path = project / "solutions" / "07_x.py"
    for content in (SMALL.encode(), b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode()):
        path.write_bytes(content)
        found = notebooks(read(path), "07")
        assert [cell.source for cell in found.lab.cells] == [cell.source for cell in notebooks(SMALL, "07").lab.cells]


def test_what_jupytext_raises_is_a_source_error(monkeypatch):
    def broken(*_args, **_kwargs):
        raise KeyError

    monkeypatch.setattr("course.notebooks.source.jupytext.reads", broken)
    with pytest.raises(SourceError, match=r"jupytext cannot read it \(KeyError\)"):
        parse(SMALL, "07")


def test_a_number_given_twice_is_built_once(project):
    (project / "solutions" / "07_x.py").write_text(SMALL)
    assert len(sources(project, ["7", "07"])) == 1


# Stored notebooks


STORED = {
    b"": "not a readable notebook",
    b"[" * 100_000: "not a readable notebook: its brackets are nested too deeply",
    b'{"nbformat": 4, "x": ' + b"9" * 5_000 + b"}": "not a readable notebook",
    b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 5}': "not a readable notebook",
    b'{"nbformat": 4, "nbformat_minor": "x", "metadata": {}, "cells": []}': "not a readable notebook",
    b'{"nbformat": 4, "nbformat_minor": 5, "metadata": 5, "cells": []}': "not a readable notebook",
    b'{"nbformat": 4, "x": "\xe9"}': "not a readable notebook",
}


@pytest.mark.parametrize("content", STORED, ids=range(len(STORED)))
def test_a_stored_notebook_that_is_none_is_a_fault(project, content):
    (project / "labs").mkdir()
    (project / "labs" / "07_x.ipynb").write_bytes(content)
    faults = looked_at(project, SMALL.encode())
    assert any(fault.startswith(f"labs/07_x.ipynb: {STORED[content]}") for fault in faults), faults


@pytest.mark.parametrize("make", [pipe, endless, dangling, Path.mkdir])
def test_a_stored_notebook_that_is_no_file_is_a_fault(project, make):
    (project / "labs").mkdir()
    make(project / "labs" / "07_x.ipynb")
    (fault, _) = looked_at(project, SMALL.encode())
    assert "not a file" in fault or fault == "labs/07_x.ipynb: missing; `make notebooks` builds it"


def target(project: Path) -> Target:
    return Target(project / "labs" / "07_x.ipynb", notebooks(code("1 + 1"), "07").lab, code("1 + 1"), "07")


def run(one: Target, write: bool = True) -> list[str]:
    return asyncio.run(run_target(one, write, 10, lambda _line: None))


@pytest.fixture
def no_kernel(monkeypatch):
    """Notebooks come back as if they had been executed."""

    async def executed(notebook, *_, **__):
        return notebook

    monkeypatch.setattr(module, "execute", executed)


def test_a_folder_that_is_a_file_is_a_fault(project, no_kernel):
    (project / "labs").write_text("in the way")
    assert run(target(project)) == [f"cannot be executed: File exists: {project / 'labs'}"]


def test_a_full_disk_is_a_fault_and_leaves_the_stored_notebook(project, no_kernel, monkeypatch):
    (project / "labs").mkdir()
    (project / "labs" / "07_x.ipynb").write_text("before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run(target(project)) == ["cannot be written: No space left on device"]
    assert [path.name for path in (project / "labs").iterdir()] == ["07_x.ipynb"]
    assert (project / "labs" / "07_x.ipynb").read_text() == "before"


@pytest.mark.parametrize("make", [pipe, endless, dangling])
def test_what_was_no_file_becomes_one(project, no_kernel, make):
    (project / "labs").mkdir()
    make(project / "labs" / "07_x.ipynb")
    run(target(project))
    assert (project / "labs" / "07_x.ipynb").read_text().startswith("{") and not (project / "labs" / "nowhere").exists()


def test_output_that_is_no_text_is_a_fault(project, monkeypatch):
    async def executed(notebook, *_, **__):
        notebook.cells[0].outputs = [{"output_type": "stream", "name": "stdout", "text": "\ud800"}]
        return notebook

    monkeypatch.setattr(module, "execute", executed)
    (fault,) = run(target(project))
    assert "surrogates not allowed" in fault


def test_a_kernel_that_does_not_start_is_a_fault(project, tmp_path, monkeypatch):
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["/no/such/python"], "display_name": "x", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    (fault,) = run(target(project))
    assert fault == "cannot be executed: No such file or directory: /no/such/python"


def test_no_kernel_of_that_name_is_a_fault(project, monkeypatch):
    async def refused(*_, **__):
        raise ExecutionError("no kernel could be started: No such kernel named python3")

    monkeypatch.setattr(module, "execute", refused)
    assert run(target(project)) == ["no kernel could be started: No such kernel named python3"]


# Calls


@pytest.mark.parametrize("seconds", ["nan", "0", "-1", "inf", "x"])
def test_a_time_limit_that_is_none_is_refused(project, seconds, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["build", "--root", str(project), "--cell-timeout", seconds])
    assert "--cell-timeout" in capsys.readouterr().err


def test_a_name_that_is_no_text_can_be_told(project):
    (project / "labs").mkdir()
    try:
        (project / "labs" / os.fsdecode(b"\xff.ipynb")).touch()
    except OSError:
        pytest.skip("this file system takes text only")
    line = [sys.executable, "-m", "course.notebooks", "build", "--check", "--no-run", "--root", str(project)]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, env=env)
    assert done.returncode == 1 and "labs/\\udcff.ipynb: no source" in done.stderr
