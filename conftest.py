"""What holds for every test and every notebook under test, whichever folder pytest is started from."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the cells of notebooks to nbval's limit, which stops the kernel and not this process; both are 120 s."""
    for item in items:
        if not isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.timeout(0))
