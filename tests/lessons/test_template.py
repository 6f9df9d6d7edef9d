"""Each core notebook keeps the limits of the template, and the tables print what is counted."""

from __future__ import annotations

import pytest

from course.exercises import minutes
from course.lessons import available, load
from course.notebooks import counts
from course.notebooks.check import read
from course.notebooks.template import limits, pending, ties

LABS = {number: load(number) for number in available()}

# Labs that are not rewritten yet, each with the limits that it does not keep. The list only shrinks: what a lab keeps
# is taken out here, and no lab is added.
NOT_REWRITTEN: dict[str, set[str]] = {}
# Retests in labs that do not exist yet, as "NN -> NN:id". Once such a lab exists, `ties` asks for the question.
PENDING: set[str] = set()


def core(root, number):
    (path,) = (root / "labs").glob(f"{number}_*.ipynb")
    return read(path.read_bytes())


@pytest.mark.parametrize("number", LABS)
def test_a_core_notebook_keeps_the_limits(root, number):
    """A listed lab must exceed just the limits it is listed with, so that the list cannot outlive its reason."""
    found = limits(core(root, number).cells, LABS[number], LABS)
    assert set(found) == NOT_REWRITTEN.get(number, set()), found


@pytest.mark.parametrize("number", LABS)
def test_an_objective_is_tied_to_a_task_an_exercise_and_a_retest(number):
    assert ties(LABS[number], LABS) == []


def test_pending_retests_are_listed():
    found = {f"{number} -> {retest}" for number, lab in LABS.items() for retest in pending(lab, LABS)}
    assert found == PENDING


@pytest.mark.parametrize("number", LABS)
def test_what_is_stored_is_what_is_counted(root, number):
    for path in sorted((root / "labs").glob(f"{number}*_*.ipynb")):
        assert counts.of_notebook(path).minutes == minutes.stored(number, counts.kind_of(path))


@pytest.mark.parametrize("name", counts.TABLES)
def test_the_tables_print_counted_minutes(root, name):
    text = (root / name).read_text(encoding="utf-8")
    assert counts.TABLES[name](text) == text, "run `make notebooks`"
    if name in ("README.md", "docs/instructor.md"):  # the others list no lab by its minutes
        for number in LABS:
            assert f" {minutes.stored(number)} |" in text or f" **{minutes.stored(number)}** |" in text
