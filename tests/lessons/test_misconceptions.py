"""Each wrong option of a prediction is a belief: why people hold it, what refutes it, where it is asked again."""

from __future__ import annotations

import pytest

from course.exercises.curve import Drawing
from course.exercises.spec import Prediction
from course.lessons import available, load

LABS = {number: load(number) for number in available()}
ASKED = [pytest.param(p, id=f"{number}-{p.id}") for number, lab in LABS.items() for p in lab.predictions]
PREDICTIONS = [param for param in ASKED if isinstance(param.values[0], Prediction)]
DRAWINGS = [param for param in ASKED if isinstance(param.values[0], Drawing)]


@pytest.fixture(scope="module")
def beliefs(root) -> dict[str, list[str]]:
    """The rows of docs/misconceptions.md by belief: what people say, why, what refutes it, what is computed, where."""
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


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_an_example_of_a_belief_shows_this_one_alone_and_the_truth_none(drawing, beliefs):
    sketch = drawing.sketch
    assert set(sketch.beliefs) <= set(beliefs)
    assert all(answer.endswith(".") for answer in drawing.answers.values())
    assert sketch.judge(sketch.true).close and not any(b.when(sketch.true) for b in sketch.beliefs.values())
    for name, belief in sketch.beliefs.items():
        drawn = sketch.cleaned([belief.example(x) for x in sketch.columns])
        assert [other for other, one in sketch.beliefs.items() if one.when(drawn)] == [name]
        judged = sketch.judge(drawn)
        assert judged.belief == name and not judged.close and drawing.answers[name] in drawing.said(drawn)


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_the_true_curve_stands_on_its_axes_and_its_anchors(drawing):
    sketch = drawing.sketch
    for x, y in zip(sketch.columns, sketch.true, strict=True):
        assert sketch.y.low <= y <= sketch.y.high, f"{x:g}: {y:g}"
        assert y == pytest.approx(sketch.given.get(x, y), rel=0.02)  # an anchor is told to three digits or fewer


def test_every_belief_is_complete_and_held_by_some_option(beliefs):
    held = {belief for lab in LABS.values() for p in lab.predictions for belief in p.beliefs}
    assert set(beliefs) == held - {""}
    for name, row in beliefs.items():
        assert len(row) == 5 and all(row), name


def test_a_belief_is_asked_again_where_the_page_says(beliefs):
    """In a lab that exists; one that is planned only need be named."""
    for name, (*_, again) in beliefs.items():
        number, _, id = again.partition(":")
        assert number.isdigit() and id, f"{name}: {again!r} is not lab:id"
        if number in LABS:
            lab = LABS[number]
            known = {item.id for item in (*lab.predictions, *lab.exercises, *lab.questions)}
            assert id in known, f"{name}: lab {number} asks no {id!r}"
