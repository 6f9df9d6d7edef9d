"""A prediction that is drawn: asked, kept and come back to beside those that are chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.exercises import Lab, asks, minutes
from course.exercises.curve import Drawing
from course.exercises.progress import Progress
from course.exercises.standing import done_so_far
from course.explore.board_view import Match
from course.explore.sketch_view import SketchForm
from tests.helpers import sketches
from tests.helpers.games import SLOTS
from tests.helpers.toy_lab import TOY

AREA = Drawing(
    "area", "How does it grow?", sketches.SQUARE,
    {"area-is-length": "It has two sides.", "area-stays": "It does not."}, "A side comes in twice.",
)  # fmt: skip
SPEC = replace(TOY, predictions=(TOY.predictions[0], AREA))
FLAT, RIGHT = [1.0] * 6, [1, 4, 16, 64, 256, 1024]


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(SPEC, Progress(tmp_path), show=False)


def test_it_is_asked_drawn_kept_and_found_again(lab, tmp_path):
    assert isinstance(lab.predict("area"), SketchForm) and "1024" not in repr(lab.predict("area"))
    said = lab.predict("area", FLAT)
    assert "At 32 m you drew 1 m²" in said.text() and "It does not." not in said.text()
    assert said.kept == "Your drawing is stored."
    lab.predict("area", RIGHT)
    again = Lab(SPEC, Progress(tmp_path), show=False)
    assert again.predict("area").drawings == [tuple(FLAT), tuple(RIGHT)]
    stored = again.progress.lab("98")["predictions"]["area"]
    assert (stored["drawings"], stored["belief"], stored["close"]) == ([FLAT, RIGHT], "", True)


def test_the_recap_has_both_drawings_and_answers_the_first(lab):
    assert repr(lab.recap("area")) == "Drawn: How does it grow?\n  Nothing is drawn yet: draw it above."
    lab.predict("area", FLAT)
    lab.predict("area", RIGHT)
    card = lab.recap("area")
    assert "You drew 1 m² at 1 m" in card.kept and "Later you drew 1 m² at 1 m, 4 m² at 2 m" in card.kept
    assert "The lab showed" not in card.kept
    text = card.text()
    assert "The lab showed 1 m² at 1 m, 4 m² at 2 m" in text and "It does not." in text and AREA.why in text


@pytest.mark.parametrize("values", ["b", 1, [1, 2], [1] * 5 + ["x"], [float("nan")] * 6, {"a": 1}])
def test_what_is_no_drawing_gets_a_sentence_and_keeps_nothing(lab, values):
    assert "Draw one number in each of 6 columns, for 1 m, 2 m" in lab.predict("area", values).text()
    assert lab.progress.lab("98")["predictions"] == {}


def test_standing_counts_both_kinds(lab):
    lab.predict("p99", "b")
    assert done_so_far(SPEC, lab.progress)["predictions"] == ["p99"]
    assert "Next: prediction area (How does it grow?)." in repr(lab)
    lab.predict("area", FLAT)
    assert done_so_far(SPEC, lab.progress)["predictions"] == ["p99", "area"]
    assert "2 of 2 predictions" in repr(lab)


def test_options_chosen_before_it_was_drawn_are_read_and_kept(lab):
    """A lab in which a curve takes the place of a choice: the file of today is neither refused nor lost."""
    chosen = [{"answer": "It rises.", "at": "2026-11-28"}]
    lab.progress.change("98", "predictions", "area", lambda _: chosen)
    assert "Nothing is drawn yet" in repr(lab.recap("area"))
    assert done_so_far(SPEC, lab.progress)["predictions"] == ["area"]  # it was answered, in the form of that day
    lab.predict("area", FLAT)
    assert lab.progress.lab("98")["predictions"]["area"]["answers"] == chosen
    for junk in (7, {"drawings": 3}, {"drawings": [[1]]}, {"drawings": ["x", None]}, {}):
        lab.progress.change("98", "predictions", "area", lambda _, junk=junk: junk)
        assert lab.predict("area").drawings == [] and "Nothing is drawn yet" in repr(lab.recap("area"))
    lab.progress.change("98", "predictions", "p99", lambda _: {"drawings": [FLAT]})
    assert "No prediction yet" in repr(lab.recap("p99"))  # and the other way round


def test_a_curve_that_shows_a_choices_answer_waits_for_the_choice(tmp_path):
    late = replace(AREA, after="p99")
    lab = Lab(replace(TOY, predictions=(TOY.predictions[0], late)), Progress(tmp_path), show=False)
    for said in (lab.predict("area", FLAT).text(), _committed(lab.predict("area"))):
        assert "Commit the prediction above first: this curve shows its answer." in said
    assert lab.progress.lab("98")["predictions"] == {}
    lab.predict("p99", "b")
    assert "At 32 m you drew 1 m²" in lab.predict("area", FLAT).text()
    lab.progress.change("98", "predictions", "p99", lambda _: None)
    assert "Close all along" in lab.predict("area", RIGHT).text()  # what was shown once is no secret
    with pytest.raises(ValueError, match="'area' is after 'nobody'"):
        replace(TOY, predictions=(TOY.predictions[0], replace(AREA, after="nobody")))
    with pytest.raises(ValueError, match="'area' is after 'p99'"):
        replace(TOY, predictions=(late, TOY.predictions[0]))


def _committed(form: SketchForm) -> str:
    """What the browser says to a drawing, of which it gets no truth."""
    form._asked(None, {"commit": FLAT}, [])
    assert "curve" not in form._paper.drawn
    return form._paper.drawn["fault"]


def test_a_belief_needs_an_answer():
    with pytest.raises(ValueError, match="area-is-length"):
        replace(AREA, answers={})


ASKS = """title: Areas
predictions:
  area:
    draw: How does it grow, {{times}} times?
    sketch: sketches.SQUARE
    beliefs:
      area-is-length: It has {{times}} sides.
      area-stays: It does not.
    why: A side comes in twice.
"""


def read(tmp_path, text: str):
    (tmp_path / "asks.yaml").write_text(text)
    return asks.read(tmp_path / "asks.yaml", "98", {"times": 2}, lambda name: vars(sketches)[name.partition(".")[2]])


def test_it_is_read_from_asks(tmp_path):
    (drawing,) = read(tmp_path, ASKS).predictions
    assert isinstance(drawing, Drawing) and drawing.question == "How does it grow, 2 times?"
    assert drawing.sketch is sketches.SQUARE and drawing.beliefs == ("area-is-length", "area-stays")
    assert drawing.answers["area-is-length"] == "It has 2 sides."
    for wrong, words in (
        ("    why: A side comes in twice.\n", "'why' is missing"),
        ("      area-stays: It does not.\n", "its sketch knows area-is-length, area-stays"),
    ):
        with pytest.raises(ValueError, match=words):
            read(tmp_path, ASKS.replace(wrong, ""))


def test_minutes_of_a_sketch_and_of_a_board():
    assert minutes.Count(drawings=1, boards=1).minutes == 2 + 4
    shown = {
        "output_type": "execute_result",
        "data": {"text/plain": repr(SketchForm(sketches.SQUARE, "How?", (), print, "x"))},
    }
    cell = {"cell_type": "code", "source": 'lab.predict("area")', "outputs": [shown], "metadata": {}}
    heading = {"cell_type": "markdown", "source": "## Predict"}
    found = minutes.count([heading, cell], SPEC).whole
    assert (found.drawings, found.predictions, found.lines) == (1, 0, 1)
    assert found.words == 1 + minutes.words("Draw: How?")
    board = {"output_type": "execute_result", "data": {"text/plain": repr(Match(SLOTS))}}
    cell = {"cell_type": "code", "source": "lab.board()", "outputs": [board], "metadata": {}}
    found = minutes.count([heading, cell], SPEC).whole
    assert (found.boards, found.words, found.lines) == (1, 1, 1)
