"""From the sources on disk to executed notebooks on disk, by real kernels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course.notebooks import source
from course.notebooks.__main__ import main
from course.notebooks.build import build, orphans, sources
from course.notebooks.canonical import WIDGET_VIEW
from tests.helpers.sizes import in_test_all
from tests.helpers.small_lab import SMALL, code


def test_sources_are_discovered_and_chosen_by_number(tmp_path: Path) -> None:
    (tmp_path / "solutions").mkdir()
    for name in ("03_a.py", "11_b.py", "helper.py", "notes_04.py"):
        (tmp_path / "solutions" / name).touch()
    assert [path.name for path in sources(tmp_path)] == ["03_a.py", "11_b.py"]
    assert [path.name for path in sources(tmp_path, ["3"])] == ["03_a.py"]
    with pytest.raises(ValueError, match=r"no source solutions/05_\*.py; there are 03, 11"):
        sources(tmp_path, ["05"])
    (tmp_path / "solutions" / "03_c.py").touch()
    with pytest.raises(ValueError, match="same number"):
        sources(tmp_path)


def test_a_notebook_without_a_source_is_a_fault(tmp_path: Path) -> None:
    for folder in ("labs", "solutions"):
        (tmp_path / folder).mkdir()
    (tmp_path / "labs" / "09_gone.ipynb").touch()
    assert orphans(tmp_path) == ["labs/09_gone.ipynb: no source solutions/09_gone.py builds it"]


@pytest.mark.parametrize("arguments", [["--no-run"], ["--jobs", "0"], ["--root", "nowhere"], ["99"]])
def test_a_wrong_call_ends_with_a_sentence(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "solutions").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["build", *arguments])
    assert "error:" in capsys.readouterr().err


def test_no_sources_at_all_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "solutions").mkdir()
    assert main(["build", "--check", "--root", str(tmp_path)]) == 0
    assert "0 notebooks from 0 sources, 0 faults" in capsys.readouterr().out


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the small lab, built by real kernels."""
    folder = tmp_path_factory.mktemp("project with space")
    (folder / "solutions").mkdir()
    (folder / "solutions" / "07_small.py").write_text(SMALL)
    assert main(["build", "--root", str(folder)]) == 0
    return folder


@in_test_all
def test_a_second_build_changes_only_measured_outputs(built: Path) -> None:
    def without_measured(path: Path) -> list[dict]:
        cells = json.loads(path.read_bytes())["cells"]
        return [cell for cell in cells if source.IGNORE_TAG not in cell["metadata"].get("tags", ())]

    paths = [built / "labs" / "07_small.ipynb", built / "solutions" / "07_small.ipynb"]
    before = [without_measured(path) for path in paths]
    assert build(built) == []
    assert [without_measured(path) for path in paths] == before


def test_a_stored_lab_is_executed_readable_and_free_of_solutions(built: Path) -> None:
    raw = (built / "labs" / "07_small.ipynb").read_bytes()
    text = raw.decode()
    assert "'text/plain': 'a table'" in str(nbformat.reads(text, as_version=4))
    assert WIDGET_VIEW not in text
    assert "rate * seconds" not in text
    assert "(True, True)" in text, "cells run in the notebook's folder, with progress pointed elsewhere"
    assert raw.endswith(b"}\n")
    assert list(built.glob("labs/*")) == [built / "labs" / "07_small.ipynb"], "a build leaves nothing else behind"


def test_answers_are_asked_for_in_solutions_alone(built: Path) -> None:
    texts = {folder: (built / folder / "07_small.ipynb").read_text() for folder in ("labs", "solutions")}
    assert "answers wanted: False" in texts["labs"] and "answers wanted: True" in texts["solutions"]


@in_test_all
def test_nbval_agrees_with_what_is_stored(built: Path, root: Path) -> None:
    """Above all that a fresh widget view does not count as an unexpected output."""
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider"]
    sanitize = f"--nbval-sanitize-with={root / 'nbval.cfg'}"
    done = subprocess.run(
        [*command, sanitize, f"--rootdir={built}", "labs", "solutions"], cwd=built, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_check_finds_a_changed_output_a_changed_source_and_a_missing_notebook(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, solution = built / "labs" / "07_small.ipynb", built / "solutions" / "07_small.ipynb"
    good = lab.read_bytes(), solution.read_bytes()
    try:
        lab.write_bytes(
            good[0].replace(b'"two', b'"too').replace(b"about 2 lines", b"inside = rate * seconds; return 1")
        )
        solution.unlink()
        assert main(["build", "--check", "--root", str(built)]) == 1
        found = capsys.readouterr().err
        assert not solution.exists(), "--check writes nothing"
    finally:
        lab.write_bytes(good[0])
        solution.write_bytes(good[1])
    assert "labs/07_small.ipynb: cell 5: source differs" in found
    assert "outputs differ from a fresh build: 'too', not 'two'" in found
    assert "solutions/07_small.ipynb: missing" in found


def test_errors_are_all_reported_and_the_stored_notebook_stays(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "solutions").mkdir()
    broken = SMALL.replace("# ## Break it", "# ## Break it\n\n# %%\n1 / 0\n\n# %%\nanswer + 1")
    (tmp_path / "solutions" / "07_small.py").write_text(broken)
    assert main(["build", "--root", str(tmp_path)]) == 1
    found = capsys.readouterr().err
    assert "labs/07_small.ipynb: cell 10: raised ZeroDivisionError: division by zero at '1 1 / 0'" in found
    assert "labs/07_small.ipynb: cell 11: raised TypeError" in found
    assert "solutions/07_small.ipynb: cell 11" not in found
    assert not (tmp_path / "labs" / "07_small.ipynb").exists()


@pytest.mark.parametrize(
    ("line", "fault", "limit"),
    [("import time; time.sleep(60)", "longer than 1 s", 1), ("import os; os._exit(3)", "the kernel died", 60)],
)
def test_a_cell_that_hangs_or_kills_the_kernel_ends_with_a_sentence(
    tmp_path: Path, line: str, fault: str, limit: float
) -> None:
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "07_small.py").write_text(code(line))
    assert any(fault in found for found in build(tmp_path, cell_timeout=limit))


# This project's own notebooks


def test_the_committed_notebooks_fit_their_sources(root: Path) -> None:
    """Without running them: nbval compares the outputs, `make notebooks-check` rebuilds everything."""
    assert build(root, write=False, run=False) == []
