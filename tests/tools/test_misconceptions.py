"""docs/misconceptions.md: each row has what its command computes, and a belief that is not refuted is a sentence."""

from dataclasses import replace

import pytest

from course.exercises.curve import Drawing
from course.lessons import available, find
from tests.helpers.sizes import size
from tools import misconceptions

PAGE = misconceptions.PAGE.read_text(encoding="utf-8")
CELLS = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `")]
ROWS = {cells[0].strip(" `"): cells[4].strip() for cells in CELLS}
FIRST = [cells[0].strip(" `") for cells in CELLS if cells[3].strip() < "Lab 04"]
"""Of labs 00 to 03: the runs of the others take a minute, and `test_facts.py` has made them once."""


@pytest.mark.parametrize("name", size(small=FIRST, whole=list(ROWS)))
def test_the_command_computes_what_stands_in_the_row(name, capsys):
    misconceptions.main([name])
    assert capsys.readouterr().out == f"{name}: {ROWS[name]}\n", "python -m tools.misconceptions --write"


def test_every_belief_of_a_lab_has_a_row_and_a_command():
    assert set(misconceptions.asked()) == set(ROWS)


def test_a_row_without_its_column_gets_it():
    row = next(line for line in PAGE.splitlines() if line.startswith("| `mean-is-the-middle`"))
    cells = row.split(" | ")
    assert misconceptions.written(" | ".join(cells[:4] + cells[5:])) == row + "\n" == misconceptions.written(row)


def test_a_name_that_is_not_there_is_a_sentence():
    with pytest.raises(SystemExit, match="no lab answers a belief called 'x'"):
        misconceptions.main(["x"])


def prediction(kind):
    """Some lab's prediction of that kind, with one of its beliefs."""
    for number in available():
        for one in find(number).spec.predictions:
            if isinstance(one, Drawing) == (kind == "drawn"):
                return number, one, next(filter(None, one.sketch.beliefs if kind == "drawn" else one.beliefs))
    raise AssertionError(kind)


@pytest.mark.parametrize("kind", ["drawn", "chosen"])
def test_what_the_runs_no_longer_refute_is_a_sentence(monkeypatch, kind):
    number, asked, name = prediction(kind)
    spec = find(number).spec
    if kind == "drawn":
        belief = asked.sketch.beliefs[name]
        agreed = replace(asked.sketch, truth=lambda: [(x, belief.example(x)) for x in asked.sketch.columns])
        spec, keys = replace(spec, predictions=(replace(asked, sketch=agreed),)), {}
    else:
        keys = {asked.id: tuple(one == name for one in asked.beliefs)}
    monkeypatch.setattr(misconceptions, "lab", lambda number: (spec, keys))
    with pytest.raises(SystemExit, match=f"lab {number} no longer refutes '{name}': its runs say what the belief says"):
        misconceptions.main([name])
