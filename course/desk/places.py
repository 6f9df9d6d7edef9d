"""Where things are: the handed-out labs, the learner's copies, and how the `course` command is called from here."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
IN_THE_WHEEL = {"labs": "_labs", "solutions": "_solutions", "docs/glossary.md": "_docs/glossary.md"}
"""What of the project an installed course brings, and where inside the package (see pyproject.toml)."""


class WorkspaceError(OSError):
    """The labs or the folder for the copies cannot be used; the message is a sentence for the learner."""


def part_of_the_course(name: str) -> Path:
    """A file or folder of the project, or its twin inside the package if the course was installed from a wheel.

    name: a key of IN_THE_WHEEL. The path need not exist.
    """
    beside = PACKAGE.parent / name
    inside = PACKAGE / IN_THE_WHEEL[name]
    return inside if inside.exists() else beside


def folders(labs: str | None = None, mine: str | None = None, *, missing_ok: bool = False) -> tuple[Path, Path]:
    """Where the handed-out labs and the learner's copies are.

    labs: by default `labs/` here, or else those that came with the course. mine: by default what MY_LABS names, as for
    `make lab`, or else `my-labs/`, both seen from the folder that holds `labs/`; from the folder we are in if the
    labs came in a wheel. An empty name is none.

    Raises WorkspaceError if there is no such folder of labs, unless missing_ok, or if a name is none.
    """
    if not labs and not os.path.isdir("labs"):
        installed = part_of_the_course("labs")
        labs = str(installed) if os.path.isdir(installed) else None
    handed_out = path_of(labs or "labs")
    in_a_wheel = handed_out.parent == PACKAGE
    copies = path_of(mine) if mine else path_of(_asked() or "my-labs", None if in_a_wheel else handed_out.parent)
    if not missing_ok and not os.path.isdir(handed_out):
        raise WorkspaceError(f"No folder {handed_out}: start this in the course's folder, or give --labs.")
    return handed_out, copies


def path_of(name: str, seen_from: Path | None = None) -> Path:
    """A name as an absolute path. Raises WorkspaceError if it is none, such as ~nobody/x."""
    try:
        path = Path(name).expanduser()
        return path.absolute() if seen_from is None else seen_from / path
    except (OSError, RuntimeError) as error:
        raise WorkspaceError(f"{name} is not the name of a folder: {reason(error)}") from error


def command(labs: Path, mine: Path, *words: str) -> str:
    """A call of the `course` command that a learner can type where we are, for these two folders."""
    script = Path(sys.executable).with_name("course")
    on_path = shutil.which("course")
    if on_path is not None and os.path.exists(script) and os.path.samefile(on_path, script):
        call = ["course"]
    elif script.is_file():
        call = [_from_here(script)]
    else:
        call = [_from_here(Path(sys.executable)), "-m", "course"]
    call += words
    try:
        usual = folders(missing_ok=True)[0]
        if usual != labs:
            call += ["--labs", _from_here(labs)]
        # MY_LABS is often given to `make` alone, and then the next command does not see it.
        if mine != (Path.cwd() if labs.parent == PACKAGE else labs.parent) / "my-labs":
            call += ["--to", _from_here(mine)]
    except OSError:
        call += ["--labs", str(labs), "--to", str(mine)]
    return shlex.join(call)


def reason(error: Exception) -> str:
    """Why something failed, without the path that the sentence names anyway."""
    return getattr(error, "strerror", None) or str(error)


def _asked() -> str | None:
    return os.environ.get("MY_LABS")


def _from_here(path: Path) -> str:
    """A path as short as it can be typed in the folder we are in."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(path)
