"""The first `make lab`: one at a time, and a sentence where packages cannot be had; and what a bundle holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from course.desk import bundle, install
from tests.helpers.sizes import PATIENCE

INSTALL = Path(install.__file__)


@pytest.fixture
def folder(root: Path, tmp_path: Path) -> Path:
    """What `make` looks at."""
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(root / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let pip and venv only be noted, and .venv/ be made."""
    calls: list[str] = []

    def run(command, what):
        (folder / ".venv" / "bin").mkdir(parents=True)
        (folder / ".venv" / "bin" / "python").write_text("")
        calls.append(what)

    monkeypatch.setattr(install, "_run", run)
    monkeypatch.setattr(install, "_pip", lambda command, offline: calls.append(" ".join(command)))
    return calls


def test_it_installs_pip_then_the_lock_then_the_course(folder: Path, made: list[str]) -> None:
    said: list[str] = []
    install.install(folder, said.append)
    first, second, third, last = made
    assert first == "making .venv/" and "pip.lock" in second and "requirements.lock" in third
    assert last.endswith(f"--no-build-isolation -e {folder}") and all("--no-deps" in call for call in made[1:])
    assert "120 MB to download" in said[-1]
    assert (folder / ".venv/pip.lock").read_text().startswith("pip==") and install.is_installed(folder)
    install.install(folder, said.append)
    assert len(made) == 4


@pytest.mark.parametrize("change", ["lock", "moved", "gone"])
def test_it_is_done_again_where_something_has_changed(folder: Path, made: list[str], change: str) -> None:
    install.install(folder, lambda _: None)
    if change == "lock":
        os.utime(folder / "requirements.lock", (2e9, 2e9))
    elif change == "moved":
        (folder / ".venv/.installed").write_text("/elsewhere")
    else:
        (folder / ".venv/bin/python").unlink()
    assert not install.is_installed(folder)


def test_the_second_waits_for_the_first_and_then_has_nothing_to_do(
    folder: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, go_on, said = threading.Event(), threading.Event(), []
    run = install._run

    def slow(command, what):
        run(command, what)
        inside.set()
        assert go_on.wait(PATIENCE)

    def say(line: str) -> None:
        said.append(line)
        if "waiting" in line:
            go_on.set()

    monkeypatch.setattr(install, "_run", slow)
    first = threading.Thread(target=install.install, args=(folder, lambda _: None))
    first.start()
    assert inside.wait(PATIENCE)
    install.install(folder, say)
    first.join()
    assert said == ["Another `make` is installing in this folder: waiting until it is done ..."] and len(made) == 4


def test_without_a_network_it_is_a_sentence(folder: Path) -> None:
    """The real pip, with an index on a closed port of this machine."""
    own = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
    done = subprocess.run(
        [sys.executable, "-P", str(INSTALL), str(folder)], capture_output=True, text=True, env={**os.environ, **own}
    )
    assert done.returncode == 1 and not install.is_installed(folder)
    assert done.stderr.startswith("The packages cannot be downloaded: no package index answers.")
    assert len(done.stderr.splitlines()) == 1 and "make bundle" in done.stderr


@pytest.mark.parametrize(
    ("said", "offline", "sentence"),
    [
        ("ERROR: Could not install packages: [Errno 28] No space left on device", [], "The disk is full"),
        (
            "ERROR: No matching distribution found for numpy==2.4.1 (from -r x)",
            ["--no-index"],
            "wheels/ has no numpy==2.4.1",
        ),
        ("HTTPSConnectionPool: Max retries exceeded with url: /pip/", [], "no package index answers"),
        ("ERROR: something else", [], "pip failed:\nERROR: something else"),
    ],
)
def test_what_pip_says_becomes_a_sentence(monkeypatch, said: str, offline: list[str], sentence: str) -> None:
    done = subprocess.CompletedProcess([], 1, stdout="", stderr=said)
    monkeypatch.setattr(install.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(install.InstallError) as refused:
        install._pip(["pip"], offline)
    assert sentence in str(refused.value)


def test_wheels_beside_the_lock_are_used_instead_of_an_index(folder: Path, made: list[str]) -> None:
    (folder / "wheels").mkdir()
    said: list[str] = []
    install.install(folder, said.append)
    assert all(f"--no-index --find-links={folder / 'wheels'}" in call for call in made[1:])
    assert "(from wheels/)" in said[-1]


def test_a_damaged_lock_is_a_sentence(folder: Path, made: list[str]) -> None:
    (folder / "requirements.lock").write_text("numpy==2.4\n")
    with pytest.raises(install.InstallError, match=r"requirements.lock does not name pip"):
        install.install(folder, lambda _: None)


# The bundle


def download(command, **_):
    """In place of pip: one package."""
    Path(command[-1], "numpy-2.whl").write_text("wheel")
    assert "--require-hashes" in command
    return subprocess.CompletedProcess(command, 0, "", "")


def test_a_bundle_holds_the_project_and_its_packages_and_nothing_of_a_learners(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no git, as in a folder that was unpacked: what was built and what a learner wrote stays away."""
    for name in (
        "course/a.py",
        "labs/03.ipynb",
        "my-labs/03.ipynb",
        ".venv/x",
        "build/y",
        ".ci/run",
        "docs/__pycache__/z",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)

    monkeypatch.setattr(bundle.subprocess, "run", download)
    made = bundle.bundle(folder, folder / "dist")
    with tarfile.open(made) as archive:
        names = {name.removeprefix("llm-batching-course/") for name in archive.getnames()}
    project = {"requirements.lock", "pyproject.toml", "course/a.py", "labs/03.ipynb", ".ci/run"}
    assert names == {*project, "wheels/numpy-2.whl"}
    assert made.name.startswith(f"llm-batching-course-py{sys.version_info[0]}{sys.version_info[1]}-")


NOT_FOR_LEARNERS = ("solutions/03.py", "docs/instructor/forms.md", "tests/test_a.py")


def test_a_bundle_for_learners_has_no_solutions_and_can_be_installed(
    root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel's build asks for every folder that pyproject.toml names; the bundle with solutions has all files."""
    for name in (*NOT_FOR_LEARNERS, "docs/glossary.md", "kernels/a.cu", "labs/03.ipynb", "course/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    for name in ("README.md", "LICENSE", "course/desk/lab_settings/server.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, folder / name)
    with monkeypatch.context() as patched:
        patched.setattr(bundle.subprocess, "run", download)
        both = [bundle.bundle(folder, folder / "dist", solutions=solutions) for solutions in (False, True)]
    held = []
    for made in both:
        with tarfile.open(made) as archive:
            archive.extractall(folder / made.stem, filter="data")
            held.append({name.partition("/")[2] for name in archive.getnames()})
    assert held[1] - held[0] == set(NOT_FOR_LEARNERS) and held[0] < held[1]
    assert "with-solutions" in both[1].name and "with-solutions" not in both[0].name
    for made in both:
        code = "from hatchling.build import build_editable; print(build_editable('.'))"
        unpacked = folder / made.stem / "llm-batching-course"
        done = subprocess.run([sys.executable, "-c", code], cwd=unpacked, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.startswith("llm_batching_course-"), done.stderr


def test_a_package_that_cannot_be_fetched_makes_no_bundle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "no index")
    monkeypatch.setattr(bundle.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RuntimeError, match=r"cannot be downloaded:\nno index"):
        bundle.bundle(folder, folder / "dist")
    assert not (folder / "dist").exists()
