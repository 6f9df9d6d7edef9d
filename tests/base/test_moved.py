"""Names of before the rooms: public ones are still to be had from `course`, moved ones answer with a way out."""

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import course
from course.base.moved import NEW_HOMES, explain

# As labs, README and docs have taught them.
MODULES = (
    *("arrivals", "budget", "calibration", "conversations", "flags", "gpu", "gpus", "lengths", "metrics", "models"),
    *("policies", "prefixes", "profiles", "queueing", "results", "steptime", "traces"),
)

# First lines of the labs as they were handed out before.
OLD_IMPORTS = [
    ("from course.figures import load as draw", "03"),
    ("from course.exercises.refill import Mine", "04"),
    ("from course.chunk_explorer import chunk_explorer, token_kernel", "07"),
    ("from course.config_picker import ConfigPicker", "08"),
    ("from course.exercises import Lab, reports08", "08"),
    ("from course.figures import measuring as draw", "16"),
    ("from course.exercises import lab07", "07"),
    ("from course import config_picker", "08"),
    ("from course.scenarios.long_prompt import PROMPT", "(07|NN)"),  # NN where course.scenarios is asked for first
    ("import course.metrics", "NN"),
]


@pytest.mark.parametrize(("line", "lab"), OLD_IMPORTS, ids=[line for line, _ in OLD_IMPORTS])
def test_an_import_of_before_says_that_the_labs_have_changed_and_what_to_do(line, lab):
    with pytest.raises(ImportError, match=f"the labs have changed since it was made: `course reset {lab}` in a term"):
        exec(line)


def test_a_folder_left_over_from_before_does_not_hide_the_sentence(tmp_path, monkeypatch):
    """After an update course/scenarios/ may still stand there, with nothing but a cache in it."""
    (tmp_path / "scenarios" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr(course, "__path__", [*course.__path__, str(tmp_path)])
    try:
        with pytest.raises(ImportError, match="course reset 07"):
            exec("from course.scenarios import long_prompt")
    finally:
        sys.modules.pop("course.scenarios", None)
        vars(course).pop("scenarios", None)


@pytest.mark.parametrize("name", NEW_HOMES)
def test_what_has_moved_is_where_the_list_says_and_no_longer_where_it_was(name):
    assert importlib.util.find_spec(f"course.{NEW_HOMES[name]}") is not None
    old = Path(course.__file__).parent.joinpath(*name.split("."))
    assert not old.with_suffix(".py").exists() and not (old / "__init__.py").exists()
    with pytest.raises(ImportError, match=rf"course\.{name} is now course\.{NEW_HOMES[name]}\."):
        explain(f"course.{name}")


def test_other_names_are_missing_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'course\.nothing'"):
        importlib.import_module("course.nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from course import nothing")


def test_public_names_come_from_course():
    exec(f"from course import {', '.join([*MODULES, *course.__all__])}")
    assert {"lengths", *course.__all__} <= set(dir(course))


def test_importing_course_fetches_nothing():
    code = "import sys; before = set(sys.modules); import course; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['course']"
