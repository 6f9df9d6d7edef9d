"""Shared by the unit tests: where the project is, and what a machine may lack."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

# Where another environment is activated, IPython would put its packages in front of ours, in the process of the tests.
os.environ.pop("VIRTUAL_ENV", None)
# Before NumPy is imported: tests run a process for each core, and products of many threads beside it are slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.helpers.places import ROOT, SHARED

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_TESTS = ROOT / "tests" / "browser"
BROWSER_LIMIT = 900  # seconds a test
LESSONS = ROOT / "tests" / "lessons"
HELPER = "tests.helpers.lesson_explorers"


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the reference implementations, beside the project where it is developed."""
    if not SHARED.is_dir():
        pytest.skip("no folder ../shared: the comparison with the reference is left out")
    return SHARED


def without_browser() -> str:
    """Return why the browser tests cannot run here, in one line; nothing where they can."""
    missing = [] if importlib.util.find_spec("playwright") else ["playwright (`make browser` installs it)"]
    if not any(map(shutil.which, BROWSERS)):
        missing.append(f"a browser on the PATH ({', '.join(BROWSERS)})")
    return f"tests/browser left out, for want of {' and '.join(missing)}" if missing else ""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave the browser tests out where there is nothing to run them with."""
    return True if collection_path == BROWSER_TESTS and without_browser() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the browser tests last: from the first of them on the process has an event loop that runs.

    They get a longer limit, since they run whole notebooks; each of their waits has one of its own.
    """
    items.sort(key=lambda item: item.path.is_relative_to(BROWSER_TESTS))
    for item in items:
        if item.path.is_relative_to(BROWSER_TESTS):
            item.add_marker(pytest.mark.timeout(BROWSER_LIMIT))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Forget, behind the tests of a lab or a file, what the lessons remember: all of it together takes gigabytes."""
    if nextitem is None or place_of(nextitem) != place_of(item):
        for name in [name for name in sys.modules if name.startswith(("course.lessons.", "tests.lessons.", HELPER))]:
            for value in vars(sys.modules[name]).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
        if LESSONS in item.path.parents:
            gc.collect()


def place_of(item: pytest.Item) -> Path:
    """The folder of a lab's tests, else the file, and in `test_facts.py` the lab of its tests."""
    if item.path.parent.parent == LESSONS:
        return item.path.parent
    return item.path / str(item.callspec.params["number"]) if item.path.name == "test_facts.py" else item.path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say that `pytest_ignore_collect` left the browser tests out, in the process that has the terminal."""
    asked_for = [Path(config.invocation_params.dir, argument.partition("::")[0]).resolve() for argument in config.args]
    if any(BROWSER_TESTS.is_relative_to(path) for path in asked_for) and without_browser():
        terminalreporter.write_line(without_browser())
