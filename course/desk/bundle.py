"""`make bundle`: the course and its pinned packages in one file, for a room without a network.

It holds the project's files and, in `wheels/`, every package of requirements.lock for this Python on this kind of
machine. Unpacked elsewhere, `make lab` finds `wheels/` and asks no index. What learners are not to read is left out,
unless it is asked for: `make bundle WITH_SOLUTIONS=1` is for whoever teaches.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

NAME = "llm-batching-course"
LEFT_OUT = {"my-labs", "dist", "build", "wheels", "__pycache__"}
"""Folders that are no part of the project, beside hidden ones. What a learner has written stays at home."""
NOT_FOR_LEARNERS = ("solutions/", "docs/instructor/", "tests/")
"""Solutions; wrong answers, hints and keys; and tests, which need the solutions."""
IN_THE_WHEEL = b'solutions = "course/_solutions"\n'
"""The line of pyproject.toml that cannot stay where there is no such folder."""


def bundle(folder: Path, to: Path, *, solutions: bool = False) -> Path:
    """Write the bundle of the project in `folder` into the folder `to`; returns the file.

    solutions: whether it holds what is not for learners. Raises RuntimeError if a package cannot be fetched.
    """
    wheels = folder / "build" / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "-qq", "--progress-bar=off"]
    command += ["--no-deps", "--require-hashes", "-r", str(folder / "requirements.lock"), "-d", str(wheels)]
    pip = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if pip.returncode:
        raise RuntimeError(f"the packages cannot be downloaded:\n{pip.stderr.strip()[-2_000:]}")
    to.mkdir(parents=True, exist_ok=True)
    kind = f"py{sys.version_info[0]}{sys.version_info[1]}-{sysconfig.get_platform().replace('-', '_')}"
    target = to / f"{NAME}-{'with-solutions-' if solutions else ''}{kind}.tar"
    # Wheels are compressed already, so the whole is not compressed again.
    with tarfile.open(target, "w") as archive:
        for path in sorted(set(files(folder))):
            if solutions or not path.startswith(NOT_FOR_LEARNERS):
                _add(archive, folder, path, solutions)
        for wheel in sorted(wheels.iterdir()):
            archive.add(wheel, f"{NAME}/wheels/{wheel.name}", recursive=False)
    return target


def _add(archive: tarfile.TarFile, folder: Path, path: str, solutions: bool) -> None:
    """One file of the project; without solutions, pyproject.toml does not ask for them."""
    if solutions or path != "pyproject.toml":
        archive.add(folder / path, f"{NAME}/{path}", recursive=False)
        return
    content = (folder / path).read_bytes().replace(IN_THE_WHEEL, b"")
    member = archive.gettarinfo(folder / path, f"{NAME}/{path}")
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def files(folder: Path) -> Iterator[str]:
    """The project's files: what git tracks or, if there is no git, all but what was built or is a learner's."""
    if (folder / ".git").exists():
        command = ["git", "-C", str(folder), "ls-files", "-z"]
        git = subprocess.run(command, capture_output=True)
        if not git.returncode:
            yield from (name for name in os.fsdecode(git.stdout).split("\0") if name and (folder / name).is_file())
            return
    for here, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in LEFT_OUT and (not one.startswith(".") or one == ".ci")]
        yield from (os.path.relpath(os.path.join(here, name), folder) for name in names)


def main(arguments: list[str] | None = None) -> int:
    """Make a bundle of the project in the current folder; 0, or 1 with a sentence."""
    parser = argparse.ArgumentParser(prog="python -m course.desk.bundle", description="The course in one file.")
    parser.add_argument("--with-solutions", action="store_true", help="for whoever teaches: with what learners lack")
    options = parser.parse_args(arguments)
    try:
        made = bundle(Path.cwd(), Path("dist"), solutions=options.with_solutions)
    except (OSError, RuntimeError, tarfile.TarError) as problem:
        print(problem, file=sys.stderr)
        return 1
    size, inside = made.stat().st_size / 1e6, "with" if options.with_solutions else "without"
    print(
        f"{made}: {size:,.0f} MB, {inside} solutions. Unpack it on the other machine and run `make lab` in its folder."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
