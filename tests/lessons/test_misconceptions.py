"""Each wrong option of a prediction is a belief: why people hold it, what refutes it, where it is asked again."""

from __future__ import annotations

import pytest

from course.lessons import available, load

LABS = {number: load(number) for number in available()}
PREDICTIONS = [pytest.param(p, id=f"{number}-{p.id}") for number, lab in LABS.items() for p in lab.predictions]


@pytest.fixture(scope="module")
def beliefs(root) -> dict[str, list[str]]:
    """The rows of docs/misconceptions.md by belief: what people say, why, what refutes it, where it is asked again."""
    text = (root / "docs" / "misconceptions.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    found = {row[0].strip("`"): row[1:] for row in rows}
    assert len(found) == len(rows), "a belief stands there twice"
    return found


@pytest.mark.parametrize("prediction", PREDICTIONS)
def test_every_wrong_option_is_a_belief_with_an_answer(prediction, beliefs):
    for option, belief, answer in zip(prediction.options, prediction.beliefs, prediction.answers, strict=True):
        if option == prediction.options[prediction.right]:
            assert belief == ""
        else:
            assert belief in beliefs and answer.endswith("."), option


def test_every_belief_is_complete_and_held_by_some_option(beliefs):
    held = {belief for lab in LABS.values() for p in lab.predictions for belief in p.beliefs}
    assert set(beliefs) == held - {""}
    for name, row in beliefs.items():
        assert len(row) == 4 and all(row), name


def test_a_belief_is_asked_again_where_the_page_says(beliefs):
    """In a lab that exists; one that is planned only need be named."""
    for name, (*_, again) in beliefs.items():
        number, _, id = again.partition(":")
        assert number.isdigit() and id, f"{name}: {again!r} is not lab:id"
        if number in LABS:
            lab = LABS[number]
            known = {item.id for item in (*lab.predictions, *lab.exercises, *lab.questions)}
            assert id in known, f"{name}: lab {number} asks no {id!r}"
