"""Odd files under `course progress`, `course class` and what makes pages and bundles: sentences, no traceback."""

from __future__ import annotations

import copy
import json
import random
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from course.base import textfiles
from course.cli import app
from course.desk import bundle
from course.exercises import Lab
from course.exercises.export import export
from course.exercises.progress import Progress
from course.lessons.lab18 import capstone
from course.lessons.lab18.search import REFERENCE
from course.notebooks import one_page
from tests.cli.test_class import at_work
from tests.helpers.odd_files import dangling, endless, pipe
from tests.helpers.sizes import size

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, float("nan"), float("inf"), 10**30, "", "x" * 10_000, "\x1b[2J", "\x00", [], {}, [[]],
    {"a": {"b": []}}, "../../etc/passwd",
)  # fmt: skip


def call(*args: object):
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert "\x1b" not in result.output and len(result.output) < 100_000
    return result


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Every place in a JSON value but its root."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in inside for place in [(*path, key), *places(one, (*path, key))]]


def changed(value: Any, draw: random.Random) -> bytes:
    """The value with something odd in one place, then perhaps cut, or with other bytes in it."""
    value = copy.deepcopy(value)
    *path, last = draw.choice(places(value))
    inside = value
    for key in path:
        inside = inside[key]
    if draw.random() < 0.3 and isinstance(inside, dict):
        inside[draw.choice(("", "x" * 500, "\x1b", "04", "design"))] = inside.pop(last)
    else:
        inside[last] = draw.choice(ODD)
    content = bytearray(json.dumps(value).encode())
    fate = draw.random()
    if fate < 0.1:
        return bytes(content[: draw.randrange(len(content))])
    for _ in range(3 if fate < 0.2 else 0):
        content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Progress:
    progress = at_work(tmp_path_factory.mktemp("learner"), random.Random(1), Counter())
    capstone.keep(REFERENCE, progress)
    return progress


def test_a_changed_export_is_counted_or_named(learner: Progress, tmp_path: Path) -> None:
    whole = export(learner, "1.0")
    path, good = tmp_path / "odd.json", tmp_path / "good.json"
    good.write_text(json.dumps(whole | {"copy": 10**9}))
    codes = Counter()
    for seed in range(size(12, 1_000)):
        path.write_bytes(changed(whole, random.Random(seed)))
        result = call("class", good, path, *(["--json"] if seed % 2 else []))
        codes["odd.json" in result.stderr] += 1
        assert result.exit_code == 0
    assert codes[True] > codes[False]  # most changes are noticed


def test_a_changed_progress_goes_out_or_is_put_aside(
    learner: Progress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = json.loads(learner.path.read_text())
    for seed in range(size(12, 1_000)):
        folder, draw = tmp_path / f"{seed}", random.Random(seed)
        folder.mkdir()
        (folder / "progress.json").write_bytes(changed(whole, draw))
        (folder / "progress.lab04-2026-11-30_12-00-00.json").write_bytes(changed(whole, draw))
        monkeypatch.setenv("COURSE_PROGRESS_DIR", str(folder))
        assert call("progress", "--export", folder / "mine.json").exit_code == 0
        assert call("class", folder / "mine.json").exit_code in (0, 2)


def a_folder(path: Path) -> None:
    path.mkdir()


WHERE_IT_GOES = {
    "mine.json": [a_folder, dangling, endless, pipe],
    "nowhere/mine.json": [lambda path: None],
    "file/mine.json": [lambda path: path.parent.write_text("mine")],
    "x" * 300: [lambda path: None],
}


@pytest.mark.parametrize(("name", "make"), [(name, make) for name, all_ in WHERE_IT_GOES.items() for make in all_])
def test_a_place_where_nothing_can_be_written_is_a_sentence(
    name: str, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(tmp_path / "progress"))
    Lab("04", Progress(), show=False).check("waste", 80)
    target = tmp_path / name
    make(target)
    result = call("progress", "--export", target)
    assert result.exit_code == 2 and result.stderr.count("\n") <= 2 and result.stdout == ""
    monkeypatch.setattr(one_page, "page", lambda: "a page")
    assert one_page.main([str(target)]) == 1 and "cannot be written" in capsys.readouterr().err


FAILURES = (PermissionError(13, "Permission denied"), OSError(28, "No space left on device"),
            RuntimeError("the packages cannot be downloaded"), tarfile.TarError("odd"))  # fmt: skip


@pytest.mark.parametrize("error", FAILURES)
def test_a_bundle_that_cannot_be_made_is_a_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def refused(*_: object, **__: object) -> Path:
        raise error

    monkeypatch.setattr(bundle, "bundle", refused)
    assert bundle.main([]) == bundle.main(["--with-solutions"]) == 1
    assert str(error) in capsys.readouterr().err


def test_a_file_that_may_not_be_read_is_named_and_the_others_count(
    learner: Progress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by hand: root, whom tests often run as, may read every file."""
    for name in ("mine.json", "secret.json"):
        (tmp_path / name).write_text(json.dumps(export(learner, "1.0")))
    read = textfiles.text

    def guarded(path: Path, *more: Any) -> str:
        if path.name == "secret.json":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *more)

    monkeypatch.setattr(textfiles, "text", guarded)
    result = call("class", tmp_path / "secret.json", tmp_path / "mine.json")
    assert result.exit_code == 0 and "1 learner." in result.stdout
    assert result.stderr == "note: secret.json cannot be read: Permission denied; it is left out\n"
