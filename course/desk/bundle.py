"""`make bundle`: the course and its pinned packages in one file, for a room without a network.

It holds the project's files and, in `wheels/`, every package of requirements.lock for this Python on this kind of
machine. Unpacked elsewhere, `make lab` finds `wheels/` and asks no index.
"""

from __future__ import annotations

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


def bundle(folder: Path, to: Path) -> Path:
    """Write the bundle of the project in `folder` into the folder `to`; returns the file.

    Raises RuntimeError if a package cannot be fetched.
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
    target = to / f"{NAME}-{kind}.tar"
    # Wheels are compressed already, so the whole is not compressed again.
    with tarfile.open(target, "w") as archive:
        for path in sorted(set(files(folder))):
            archive.add(folder / path, f"{NAME}/{path}", recursive=False)
        for wheel in sorted(wheels.iterdir()):
            archive.add(wheel, f"{NAME}/wheels/{wheel.name}", recursive=False)
    return target


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


if __name__ == "__main__":
    try:
        made = bundle(Path.cwd(), Path("dist"))
    except (OSError, RuntimeError) as problem:
        sys.exit(str(problem))
    print(
        f"{made}: {made.stat().st_size / 1e6:,.0f} MB. Unpack it on the other machine and run `make lab` in its folder."
    )
