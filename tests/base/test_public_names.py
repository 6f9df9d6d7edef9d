"""What labs, README and docs import from `course` itself."""

import importlib
import subprocess
import sys

import pytest

import course

MODULES = (
    *("arrivals", "budget", "calibration", "conversations", "flags", "gpu", "gpus", "lengths", "metrics", "models"),
    *("policies", "prefixes", "profiles", "queueing", "results", "steptime", "traces"),
)


def test_public_names_come_from_course():
    exec(f"from course import {', '.join([*MODULES, *course.__all__])}")
    assert {"lengths", *course.__all__} <= set(dir(course))


def test_other_names_are_missing_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'course\.nothing'"):
        importlib.import_module("course.nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from course import nothing")


def test_importing_course_fetches_nothing():
    code = "import sys; before = set(sys.modules); import course; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['course']"
