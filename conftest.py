"""What holds for every test and every notebook under test, whichever folder pytest is started from."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest

from course.base import answers

CPU_LIMIT = 120.0
"""Seconds that a test's process may compute, fixtures included. What waits computes nothing, so pytest-timeout stands
behind this with the clock's `timeout` of pyproject.toml, which no busy machine reaches."""


def pytest_configure(config: pytest.Config) -> None:
    """Point progress and the IPython profile at a temporary folder, and find nbval.cfg from any working directory.

    nbval starts its kernels with this process's environment, so a learner's predictions and answers neither change a
    test nor are changed by one.
    """
    scratch = Path(tempfile.mkdtemp(prefix="course-test-"))
    config.add_cleanup(lambda: shutil.rmtree(scratch, ignore_errors=True))
    os.environ["COURSE_PROGRESS_DIR"] = str(scratch / "progress")
    os.environ["IPYTHONDIR"] = str(scratch / "ipython")
    sanitize = getattr(config.option, "nbval_sanitize_with", None)
    if sanitize and not Path(sanitize).is_absolute() and not Path(sanitize).exists():
        config.option.nbval_sanitize_with = str(config.rootpath / sanitize)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while the tests are collected, nor go over them later: it was a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the cells of notebooks to nbval's limit, which stops the kernel and not this process."""
    for item in items:
        if not isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.timeout(0))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have the kernel of a notebook in `solutions/` write the answers of tasks, as its builder did, and no other."""
    if item.path.suffix == ".ipynb":
        os.environ[answers.VARIABLE] = str(int(item.path.parent.name == "solutions"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test after so many seconds of CPU time, and say where it was: time on a busy machine is nobody's fault.

    `@pytest.mark.cpu_limit(300)` gives a test another limit. Windows has no such timer.
    """
    if not hasattr(signal, "setitimer"):
        return (yield)
    marker = item.get_closest_marker("cpu_limit")
    limit = marker.args[0] if marker else CPU_LIMIT

    def over(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"it has computed for {limit:g} s: longer than a test may (CPU_LIMIT in conftest.py)")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
