"""Shared by the unit tests: where the project is, and what a machine may lack."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

LEFT_OUT: list[str] = []


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the reference implementations, beside the project where it is developed."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder ../shared: the comparison with the reference is left out")
    return folder


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave the browser tests out, with one line at the end, where there is nothing to run them with."""
    if collection_path == ROOT / "tests" / "browser":
        missing = [] if importlib.util.find_spec("playwright") else ["playwright (`make browser` installs it)"]
        if not any(map(shutil.which, BROWSERS)):
            missing.append(f"a browser on the PATH ({', '.join(BROWSERS)})")
        if missing:
            LEFT_OUT.append(f"tests/browser left out: there is no {' and no '.join(missing)}")
            return True
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what `pytest_ignore_collect` left out."""
    for line in LEFT_OUT:
        terminalreporter.write_line(line)
