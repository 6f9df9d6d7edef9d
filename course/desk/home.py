"""Where Jupyter keeps its own files, and a place for them if the home folder cannot be written.

Looked up without importing Jupyter, since `make lab` must say at once what is wrong.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_data_dir

HIDDEN = ".jupyter"
"""The folder inside the copies that takes what the home folder does not; JupyterLab does not list hidden ones."""


def jupyter_folders(environment: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """The folders in which Jupyter, IPython and the course write, by the variable that names another one."""
    home = Path(os.path.expanduser("~"))
    windows, mac = os.name == "nt", sys.platform == "darwin"
    if windows:
        data = Path(environment.get("APPDATA") or home) / "jupyter"
    elif mac:
        data = home / "Library" / "Jupyter"
    else:
        data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "jupyter"
    data = Path(environment.get("JUPYTER_DATA_DIR") or data)
    usual = {
        "JUPYTER_CONFIG_DIR": home / ".jupyter",
        "JUPYTER_DATA_DIR": data,
        "JUPYTER_RUNTIME_DIR": data / "runtime",
        "IPYTHONDIR": home / ".ipython",
        "COURSE_PROGRESS_DIR": Path(user_data_dir("llm-batching-course", appauthor=False)),
    }
    return {name: Path(environment.get(name) or folder) for name, folder in usual.items()}


def elsewhere(mine: Path, environment: Mapping[str, str] = os.environ) -> tuple[dict[str, str], str]:
    """Variables that send what Jupyter writes into `mine`, for each folder that cannot be written, and a sentence.

    Both are empty if everything can be written. A folder that was asked for by its variable is left alone: who named
    it should hear that it does not work.
    """
    refused = {
        name: why
        for name, folder in jupyter_folders(environment).items()
        if not environment.get(name) and (why := unwritable(folder))
    }
    if not refused:
        return {}, ""
    first, why = next(iter(refused.items()))
    folder = jupyter_folders(environment)[first]
    moved = {name: str(mine / HIDDEN / name.lower()) for name in refused}
    return moved, (
        f"{folder} cannot be written ({why}): JupyterLab's settings, and your progress if it belongs there too, are "
        f"kept in {mine / HIDDEN} instead."
    )


def unwritable(folder: Path) -> str:
    """Why a folder, or if there is none yet the one in which it would be made, cannot be written; or ""."""
    try:
        while folder != folder.parent:
            try:
                folder.lstat()
            except (FileNotFoundError, NotADirectoryError):
                folder = folder.parent
            else:
                break
        trial = folder / f".course-{secrets.token_hex(6)}.tmp"
        with trial.open("xb") as file:
            file.write(b"1")
        trial.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""
