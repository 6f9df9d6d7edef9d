"""The lock files, environment.yml and the Makefile agree with pyproject.toml and with each other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from course.cli import COMMANDS
from course.cli.serve import NEEDED
from course.desk.jupyter_options import value_of
from course.desk.workspace import jupyter_arguments

LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-hub.lock")


def pins(path: Path) -> list[str]:
    """Every pinned requirement of a lock file, with its marker, without its hashes."""
    return re.findall(r"^([a-z0-9][^\\\n]*?) *\\$", path.read_text(), re.MULTILINE)


def versions(path: Path) -> dict[str, set[str]]:
    """Pinned versions by name. A name has several only where markers tell them apart."""
    found: dict[str, set[str]] = {}
    for pin in pins(path):
        requirement = Requirement(pin)
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", f"{path.name}: {pin} is no pin"
        found.setdefault(canonicalize_name(requirement.name), set()).add(specifier.version)
    return found


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    """pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text())


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_has_hashes_and_no_address(root: Path, name: str) -> None:
    text = (root / name).read_text()
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert all(re.match(r"[a-z0-9][\w.-]*==|    --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    # A continued line without a hash line after it would leave a package unhashed, and pip would refuse the whole file.
    assert all(lines[i + 1].lstrip().startswith("--hash=") for i, line in enumerate(lines) if "==" in line)
    assert not re.search(r"https?://|file:|find-links|index-url|@ ", text)


def test_the_lock_satisfies_pyproject(root: Path, project: dict) -> None:
    locked = versions(root / "requirements.lock")
    others = {"dev": versions(root / "requirements-dev.lock"), "hub": versions(root / "requirements-hub.lock")}
    groups = project["dependency-groups"]
    required = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for text in [*required, *(text for group in groups.values() for text in group)]:
        requirement = Requirement(text)
        lock = next((pinned for name, pinned in others.items() if text in groups[name]), locked)
        pinned = lock.get(canonicalize_name(requirement.name))
        assert pinned, f"{text} of pyproject.toml is in no lock: run `make lock`"
        assert all(map(requirement.specifier.contains, pinned)), f"{text} does not admit the locked {pinned}"


def test_every_dependency_states_a_lower_bound(project: dict) -> None:
    extras = [text for extra in project["project"]["optional-dependencies"].values() for text in extra]
    for text in [*project["project"]["dependencies"], *extras]:
        assert [spec.operator for spec in Requirement(text).specifier] == [">="], text


@pytest.mark.parametrize("name", LOCKS[1:])
def test_the_other_locks_agree_with_the_first(root: Path, name: str) -> None:
    locked, other = versions(root / LOCKS[0]), versions(root / name)
    assert {name: other[name] for name in other.keys() & locked.keys()} == {
        name: locked[name] for name in other.keys() & locked.keys()
    }


def test_environment_yml_lists_the_locked_versions(root: Path, project: dict) -> None:
    environment = yaml.safe_load((root / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    assert pip["pip"] == pins(root / "requirements.lock"), "run `make lock`"
    python = next(Requirement(text.replace("=", "==")) for text in conda if text.startswith("python="))
    (wanted,) = python.specifier
    assert Requirement(f"python{project['project']['requires-python']}").specifier.contains(wanted.version)


def test_what_a_lab_needs_is_no_extra(project: dict) -> None:
    """Lab 16 serves over HTTP."""
    needed = {Requirement(text).name for text in project["project"]["dependencies"]}
    assert {canonicalize_name(name) for name in NEEDED} <= {canonicalize_name(name) for name in needed}


INSTALLED = re.compile(r"pip install (?:-\S+ )*['\"]?(?!-)(?!\.\[)([A-Za-z][\w.-]*)")


def test_nothing_advises_to_install_this_package_by_its_name(root: Path, project: dict) -> None:
    """Nobody has registered it: whoever does, gives learners whatever they like."""
    ours = canonicalize_name(project["project"]["name"])
    places = [root / "README.md", root / "Makefile", *root.glob("docs/*.md"), *root.glob("course/**/*.py")]
    advised = {
        canonicalize_name(name): path.name
        for path in [*places, *root.glob("solutions/*.py")]
        for name in INSTALLED.findall(path.read_text(encoding="utf-8"))
    }
    assert ours not in advised, advised[ours]


def test_extras_for_each_gpu_and_each_cluster(project: dict) -> None:
    extras = project["project"]["optional-dependencies"]
    assert {name: Requirement(text).name for name, (text,) in extras.items()} == {
        "cuda12": "cupy-cuda12x",
        "cuda13": "cupy-cuda13x",
        "rocm": "cupy-rocm-7-0",
        "dask": "distributed",
        "ray": "ray",
        "fast": "numba",
    }


@pytest.mark.skipif(not shutil.which("make"), reason="no make on the PATH")
def test_make_says_which_python_it_needs(root: Path, tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(root / name, tmp_path / name)
    done = subprocess.run(["make", "lab", "PYTHON=/bin/false"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode
    assert "the course needs 3.11, 3.12 or 3.13" in done.stdout
    assert "/bin/false" in done.stdout
    assert not (tmp_path / ".venv").exists()


@pytest.mark.skipif(not shutil.which("make"), reason="no make on the PATH")
def test_make_help_lists_every_target(root: Path) -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (root / "Makefile").read_text(), re.MULTILINE)[1].split()
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[1] for line in shown.splitlines()} == set(phony) - {"FORCE"}


def test_the_dockerfile_agrees_with_the_project(root: Path, project: dict) -> None:
    """It is not built where the tests run, so what it names is looked up: Python, files, the command, its options."""
    text = (root / "Dockerfile").read_text()
    version = re.search(r"^FROM python:(\d+\.\d+)-", text, re.MULTILINE)[1]
    assert Requirement(f"python{project['project']['requires-python']}").specifier.contains(version)
    for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE):
        assert all((root / name).exists() for name in line.split())
    ignored = (root / ".dockerignore").read_text().split()
    needed = [*project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"], "course", "README.md", "LICENSE"]
    assert not {Path(name).parts[0] for name in needed}.intersection(ignored)
    last = {word: json.loads(re.findall(rf"^{word} (.*)$", text, re.MULTILINE)[-1]) for word in ("ENTRYPOINT", "CMD")}
    entry, options = last["ENTRYPOINT"], last["CMD"]  # of the last stage, which is built where no target is named
    assert entry[0] in project["project"]["scripts"] and entry[1] in COMMANDS and entry[2] == "--"
    assert f"EXPOSE {next(option.partition('=')[2] for option in options if option.startswith('--port'))}" in text
    arguments = jupyter_arguments(Path("/home/learner/my-labs"), options)
    assert value_of("--ServerApp.ip", arguments) == "0.0.0.0" and "USER learner" in text
