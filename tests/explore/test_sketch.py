"""Sketches: how a drawing is compared, and that nothing of the truth is seen before the commit."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest

from course.explore.sketch import Axis, Sketch
from course.explore.sketch_view import SketchForm
from tests.helpers.sketches import QUEUE, SQUARE


def form(sketch: Sketch = SQUARE, drawings=(), kept=None) -> SketchForm:
    kept = [] if kept is None else kept
    return SketchForm(sketch, "How large?", drawings, kept.append, "draw")


def test_the_truth_is_close_to_itself_and_shows_no_belief():
    for sketch in (SQUARE, QUEUE):
        judged = sketch.judge(sketch.true)
        assert judged.close and judged.belief == "" and judged.sentence.startswith("Close all along.")
        assert not any(belief.when(sketch.true) for belief in sketch.beliefs.values())


def test_between_its_points_the_curve_is_straight_on_the_scales_of_the_axes():
    assert SQUARE.at(3) == pytest.approx(9)  # a power law is a straight line there
    assert QUEUE.at(0.505) == pytest.approx((QUEUE.at(0.50) + QUEUE.at(0.51)) / 2)
    assert QUEUE.at(0.95) == QUEUE.points[-1][1] and QUEUE.at(0.0) == 0


@pytest.mark.parametrize("sketch", [SQUARE, QUEUE])
def test_an_example_shows_its_own_belief_alone(sketch):
    for name, belief in sketch.beliefs.items():
        judged = sketch.judge(sketch.cleaned([belief.example(x) for x in sketch.columns]))
        assert judged.belief == name and not judged.close


def test_a_logarithmic_axis_is_judged_by_factors():
    """1.2 times too much in every column is close, 1.3 times is not, however small or large the value."""
    for factor, close in ((1.2, True), (1 / 1.2, True), (1.3, False), (1 / 1.3, False)):
        judged = SQUARE.judge(SQUARE.cleaned([factor * y for y in SQUARE.true]))
        assert judged.close is close
        assert judged.apart == pytest.approx(max(factor, 1 / factor), rel=1e-9)  # the anchor does not count
    low, high = (QUEUE.judge([y + off for y in QUEUE.true]) for off in (0.05 * 20, 0.07 * 20))
    assert low.close and not high.close and high.apart == pytest.approx(0.07)


def test_the_sentence_names_the_column_with_the_largest_gap():
    for column in range(1, 6):
        drawn = list(SQUARE.true)
        drawn[column] /= 100
        judged = SQUARE.judge(drawn)
        assert judged.worst == column
        x, true = SQUARE.columns[column], ("1", "4", "16", "64", "256", "1,020")[column]
        assert f"At {x} m you drew {x * x / 100:.3g} m²; it is {true} m²." in judged.sentence
        assert "100 times too low" in judged.sentence
    assert "times too high" in SQUARE.judge([1, 40, 160, 600, 1500, 2000]).sentence


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((1, 1, 1, 1, 1, 1.1), "stays flat"),
        ((1, 4, 16, 64, 256, 1024), "rises evenly"),
        ((1, 200, 500, 600, 700, 800), "rises mostly at the start"),
        ((1, 1, 1, 1, 10, 1000), "rises mostly at the end"),
        ((1000, 100, 10, 5, 2, 1), "falls mostly at the start"),
        ((1, 10, 100, 1000, 30, 1), "rises and falls again"),
    ],
)
def test_a_shape_in_words(values, said):
    assert SQUARE.shape(values) == said


@pytest.mark.parametrize(
    ("named", "one", "eight"),
    [("{x:g} slots", "1 slot", "8 slots"), ("{x:g} requests/s", "1 request/s", "8 requests/s"),
     ("{x:g} ms", "1 ms", "8 ms"), ("{x:g} H100", "1 H100", "8 H100"),
     ("a batch of {x:g}", "a batch of 1", "a batch of 8")],
)  # fmt: skip
def test_one_of_a_thing_is_said_in_the_singular(named, one, eight):
    sketch = replace(SQUARE, named=named)
    assert sketch.place(1) == one and sketch.place(8) == eight


def test_the_page_and_the_text_know_nothing_of_the_truth_before_the_commit():
    computed = []
    sketch = Sketch(**(vars_of(SQUARE) | {"truth": lambda: computed.append(1) or [(1, 1), (32, 1024)]}))
    shown = form(sketch)
    before = shown._repr_mimebundle_()["text/plain"]
    page = json.dumps([shown._paper.axes, shown._paper.drawn])
    assert computed == [] and "1024" not in page + before and "256" not in page + before
    assert "belief" not in page and "area-is-length" not in page + before
    shown._asked(None, {"commit": [1, 2, 3, 4, 5, 6]}, [])
    assert computed == [1] and shown._paper.drawn["true"][-1] == pytest.approx(1024)
    assert shown.text() == before == repr(shown)


def vars_of(sketch: Sketch) -> dict:
    return {name: value for name, value in vars(sketch).items() if name not in ("points", "true")}


def test_the_first_and_the_last_drawing_are_shown_and_anchors_stay_where_they_are():
    kept: list = []
    shown = form(kept=kept)
    shown._repr_mimebundle_()
    for drawing in ([9, 2, 3, 4, 5, 6], [9, 4, 16, 64, 256, 1e9], [1, 4, 16, 64, 256, 1024]):
        shown._asked(None, {"commit": drawing}, [])
    assert kept == [(1, 2, 3, 4, 5, 6), (1, 4, 16, 64, 256, 2000), (1, 4, 16, 64, 256, 1024)]
    assert shown._paper.drawn["first"] == [1, 2, 3, 4, 5, 6] and shown._paper.drawn["close"]
    again = form(drawings=shown.drawings)
    again._repr_mimebundle_()
    assert again._paper.drawn["mine"] == [1, 4, 16, 64, 256, 1024]


JUNK = [
    None,
    1,
    "x",
    [1],
    [math.nan] * 6,
    [math.inf] * 6,
    ["a"] * 6,
    [True] * 6,
    [None] * 6,
    {"a": 1},
    [[1]] * 6,
    [10**400] * 6,
]


def test_hostile_messages_raise_nothing_and_keep_nothing():
    draw, kept = random.Random(0), []
    shown = form(kept=kept)
    shown._repr_mimebundle_()
    for _ in range(500):
        junk = draw.choice(JUNK)
        shown._asked(None, draw.choice([{"commit": junk}, junk, {"other": junk}]), None)
    assert kept == [] and shown.drawings == [] and "mine" not in shown._paper.drawn
    assert "6 columns" in shown._paper.drawn["fault"]
    for extreme in ([1e299] * 6, [-5] * 6, [0] * 6):
        shown._asked(None, {"commit": extreme}, None)
    assert len(kept) == 3 and all(0.5 <= y <= 2_000 for y in kept[-1])
    json.dumps(shown._paper.drawn, allow_nan=False)


@pytest.mark.parametrize(
    "change",
    [
        {"columns": (1, 2)},
        {"columns": (1, 2, 4, 99)},
        {"given": {3: 1.0}},
        {"given": dict.fromkeys(SQUARE.columns, 1.0)},
    ],
)
def test_a_sketch_that_cannot_be_drawn_is_refused(change):
    with pytest.raises(ValueError, match="column"):
        Sketch(**(vars_of(SQUARE) | change))


@pytest.mark.parametrize(("low", "high", "log"), [(1, 1, False), (2, 1, False), (0, 1, True), (-1, 1, True)])
def test_an_axis_without_length_is_refused(low, high, log):
    with pytest.raises(ValueError, match="is no"):
        Axis("x", low, high, (), log)


def test_the_fronts_set_text_and_evaluate_nothing(root):
    import re

    for name in ("see.js", "drawn.js", "board.js", "board_picture.js", "sketch.js", "words.js"):
        source = (root / "course" / "explore" / name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\b", source), (
            name
        )
        assert "prefers-reduced-motion" in (root / "course" / "explore" / "board.css").read_text(encoding="utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", source), name
