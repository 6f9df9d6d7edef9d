"""What `make` runs to fill .venv/: `python course/desk/install.py FOLDER`, with nothing but Python's own library.

Only one runs in a folder at a time: the next waits, and then finds everything done. With a folder `wheels/`, as in what
`make bundle` makes, no network is used.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where `make` is run in WSL
    fcntl = None  # type: ignore[assignment]

STAMP = ".installed"
NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|Max retries exceeded|"
    r"name resolution|Network is unreachable|No matching distribution found"
)
FULL = re.compile(r"No space left on device|Errno 28")
LINES = 12
"""Of what pip says, if no sentence here explains it."""


class InstallError(Exception):
    """The packages cannot be installed; the message is a sentence."""


def install(folder: Path, say: Callable[[str], None] = print) -> None:
    """Make `.venv/` in `folder` as requirements.lock says, unless it is so already.

    Raises InstallError: a package cannot be had, or the folder cannot be written.
    """
    with _alone(folder, say):
        if is_installed(folder):
            return
        environment = folder / ".venv"
        python = environment / "bin" / "python"
        if not _works(python):
            say(f"Making .venv/ with Python {sys.version.split()[0]} ...")
            _run([sys.executable, "-m", "venv", "--clear", str(environment)], "making .venv/")
        wheels = folder / "wheels"
        offline = ["--no-index", f"--find-links={wheels}"] if wheels.is_dir() else []
        where = "from wheels/" if offline else "about 120 MB to download, a minute or two"
        say(f"Installing the pinned packages into .venv/ ({where}) ...")
        lock = folder / "requirements.lock"
        (environment / "pip.lock").write_text(_part_of(lock.read_text(encoding="utf-8"), "pip"), encoding="utf-8")
        # --no-compile halves the time: most of it is never imported, and Python compiles the rest at its first import.
        options = ["--disable-pip-version-check", "-qq", "--progress-bar=off", "--no-compile", "--no-deps", *offline]
        pip = [str(python), "-m", "pip", "install", *options]
        # The pinned pip comes first: the one that Python 3.11 brings needs twice as long for the rest. It is small, so
        # if it cannot be had nothing can, so there are no five more attempts.
        _pip([*pip, "--retries=1", "--require-hashes", "-r", str(environment / "pip.lock")], offline)
        _pip([*pip, "--require-hashes", "-r", str(lock)], offline)
        # Hashes and an editable install cannot go into one call. Without build isolation this uses the hatchling from
        # the lock, so that nothing unpinned is ever fetched.
        _pip([*pip, "--no-build-isolation", "-e", str(folder)], offline)
        (environment / STAMP).write_text(str(folder), encoding="utf-8")


def is_installed(folder: Path) -> bool:
    """Whether `.venv/` was made here, from the present lock file."""
    stamp = folder / ".venv" / STAMP
    try:
        moment = stamp.stat().st_mtime
        older = all((folder / name).stat().st_mtime <= moment for name in ("requirements.lock", "pyproject.toml"))
        return older and stamp.read_text(encoding="utf-8") == str(folder) and (folder / ".venv/bin/python").exists()
    except OSError:
        return False


@contextmanager
def _alone(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the folder; the operating system gives it back if this process dies."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("Another `make` is installing in this folder: waiting until it is done ...")
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError:  # a file system without locks
                pass
        yield
    finally:
        os.close(handle)


def _works(python: Path) -> bool:
    try:
        return not subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True).returncode
    except OSError:
        return False


def _part_of(lock: str, name: str) -> str:
    """The lines of one package in a lock file, with its hashes."""
    match = re.search(rf"^{name}==.*?(?=^\S)", f"{lock}\n#", re.MULTILINE | re.DOTALL)
    if match is None:
        raise InstallError(f"requirements.lock does not name {name}: it is damaged")
    return match[0]


def _pip(command: Sequence[str], offline: Sequence[str]) -> None:
    pip = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if not pip.returncode:
        return
    output = f"{pip.stdout}\n{pip.stderr}"
    if FULL.search(output):
        raise InstallError("The disk is full: the packages need 500 MB in .venv/.")
    if offline and "No matching distribution found" in output:
        missing = re.search(r"No matching distribution found for ([^\s(]+)", output)
        version = ".".join(map(str, sys.version_info[:2]))
        raise InstallError(
            f"wheels/ has no {missing[1] if missing else 'package'} for Python {version} "
            "on this machine: make the bundle with the same Python on the same kind of machine."
        )
    if NO_NETWORK.search(output):
        raise InstallError(
            "The packages cannot be downloaded: no package index answers. The first `make lab` needs one; later ones "
            "need no network. Without a network, use a file that `make bundle` made on a machine with one."
        )
    raise InstallError("pip failed:\n" + "\n".join(line for line in output.splitlines() if line.strip())[-4_000:])


def _run(command: Sequence[str], what: str) -> None:
    process = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if process.returncode:
        lines = [line for line in f"{process.stdout}\n{process.stderr}".splitlines() if line.strip()]
        raise InstallError(f"{what} failed: " + " ".join(lines[-LINES:]))


if __name__ == "__main__":
    try:
        install(Path(sys.argv[1]).resolve())
    except KeyboardInterrupt:
        sys.exit(130)
    except (InstallError, OSError) as problem:
        sys.exit(str(problem))
