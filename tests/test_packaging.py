"""The wheel is complete: the package, its data, and as data of the package the kernels, labs and solutions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib import metadata, resources
from pathlib import Path

import pytest

import course


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built by the hatchling of this environment without touching the network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_the_package_its_data_and_nothing_else(wheel: Path, root: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {f"course/{path}" for path in files(root / "course")} | {"course/_docs/glossary.md"}
    for folder in ("kernels", "labs", "solutions"):
        expected |= {f"course/_{folder}/{path}" for path in files(root / folder)}
    packed = {name for name in names if "/." not in name and not name.startswith("llm_batching_course-")}
    assert packed == expected
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_wheel_switches_the_hook_on_saving_on_for_every_server(wheel: Path) -> None:
    """What the wheel puts into etc/jupyter, Jupyter's servers read, a hub's too; the token is no part of it."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (one for one in archive.namelist() if "/etc/jupyter/" in one)
    assert name.endswith(".data/data/etc/jupyter/jupyter_server_config.d/llm-batching-course.json")
    assert json.loads(archive.read(name)) == {"ServerApp": {"jpserver_extensions": {"course.desk.server": True}}}


def test_the_wheel_works_where_the_project_is_not(wheel: Path, tmp_path: Path) -> None:
    """Unpacked elsewhere, the package finds its kernels inside itself; nothing of the working tree is needed."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import course; from course.gpu import sources; "
        "print(course.__file__); print(sources.folder()); print('decode_step' in sources.text('decode_step.cu'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        str(tmp_path / "course" / "__init__.py"),
        str(tmp_path / "course" / "_kernels"),
        "True",
    ]


def test_an_installed_course_brings_its_labs(wheel: Path, root: Path, tmp_path: Path) -> None:
    """The commands about labs, and `course lab` up to the moment in which JupyterLab starts, far from the project."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "home").mkdir()
    names = sorted(path.name for path in (root / "labs").glob("*.ipynb"))

    def course(*words: str) -> str:
        code = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); from course.cli import main; main()"
        environment = {**os.environ, "COURSE_PROGRESS_DIR": str(tmp_path / "progress"), "PYTHONPATH": ""}
        environment.pop("MY_LABS", None)
        line = [sys.executable, "-P", "-c", code, *words]
        done = subprocess.run(line, cwd=tmp_path / "home", env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert [row["file"] for row in json.loads(course("labs", "--json"))["labs"]] == names
    assert course("lab", "--", "--copy-only") == f"New in my-labs/: {', '.join(names)}\n"
    mine = tmp_path / "home" / "my-labs"
    assert {path.name for path in mine.iterdir()} == {*names, ".handed-out.json", "START.md", "glossary.md"}
    (mine / names[0]).write_text("my answer")
    assert f"A fresh copy: {mine / names[0]}" in course("reset", names[0])
    assert (mine / names[0]).read_bytes() == (root / "labs" / names[0]).read_bytes()
    assert (tmp_path / "site/course/_solutions" / names[0]).is_file()


def test_an_editable_install_has_the_kernels_beside_the_package(root: Path) -> None:
    """Hatchling does not apply force-include to an editable install, so code must look in both places."""
    if Path(course.__file__).parent != root / "course":
        pytest.skip("the package under test is installed from a wheel")
    assert not (resources.files("course") / "_kernels").is_dir()
    assert (root / "kernels" / "README.md").is_file()


def test_the_command_is_installed() -> None:
    (command,) = metadata.entry_points(group="console_scripts", name="course")
    assert command.value == "course.cli:main"


def files(folder: Path) -> set[Path]:
    """The files of `folder` as relative paths, without hidden ones (ruff leaves a cache) and compiled ones."""
    found = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    return {path for path in found if not any(part == "__pycache__" or part[0] == "." for part in path.parts)}
