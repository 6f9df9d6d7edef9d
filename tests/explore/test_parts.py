"""The parts of an explorer: controls and their stops, tables, sentences, and figures as they travel."""

from __future__ import annotations

import json
import math

import ipywidgets as widgets
import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.explore import Choice, Explorer, Slider, Toggle, amounts
from course.explore.plot import Drawing, Plot, picture
from course.explore.table import failure, html_table, rows_of, table, text_table, warnings_of
from tests.helpers.toy_explorer import CV, RATE, SLOTS


def test_stops_of_sliders():
    assert RATE.stops == tuple(range(1, 51))
    assert SLOTS.stops == (1, 2, 4, 8, 16, 32, 64, 128, 256)
    assert CV.stops[:3] == (0.0, 0.25, 0.5) and CV.stops[-1] == 4.0
    assert Slider("a", "A", 0, 10, 3, 3).stops == (0, 3, 6, 9, 10)
    assert Slider("a", "A", 0.1, 1.0, 0.1, 0.3).stops[2] == 0.3
    ten = Slider("a", "A", 0.1, 100, 10 ** (1 / 5), 1, log=True).stops
    assert ten[:6] == (0.1, 0.158, 0.251, 0.398, 0.631, 1.0) and ten[-1] == 100.0
    odd = Slider("a", "A", 1, 100, 3, 50, log=True)
    assert odd.stops == (1, 3, 9, 27, 50, 81, 100), "the default and the limits are stops too"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Slider("a", "A", 5, 5, 1, 5), "make low smaller"),
        (lambda: Slider("a", "A", 5, 1, 1, 5), "make low smaller"),
        (lambda: Slider("a", "A", 1, 5, 0, 5), "step must be above 0"),
        (lambda: Slider("a", "A", 1, 5, -1, 5), "step must be above 0"),
        (lambda: Slider("a", "A", 1, 5, 1, 6), "outside"),
        (lambda: Slider("a", "A", 1, math.nan, 1, 2), "high of slider 'a'"),
        (lambda: Slider("a", "A", 0, 5, 2, 1, log=True), "low > 0"),
        (lambda: Slider("a", "A", 1, 5, 1, 1, log=True), "factor above 1"),
        (lambda: Choice("a", "A", ["x"], "x"), "two or more"),
        (lambda: Choice("a", "A", ["x", "x"], "x"), "different texts"),
        (lambda: Choice("a", "A", ["x", "y"], "z"), "not an option"),
        (lambda: Toggle("a", "A", 1), "neither"),
        (lambda: Explorer(None, [RATE, RATE], None, None), "two controls are called 'rate'"),
        (lambda: Explorer(None, ["rate"], None, None), "'rate' is not a control"),
        (lambda: Explorer(None, None, None, None), "None is not a control"),
    ],
)
def test_controls_that_make_no_sense_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_choices_with_texts_of_their_own():
    by_pairs = Choice("n", "N", [("none", 0), ("a few", 4)], 4)
    by_mapping = Choice("n", "N", {"none": 0, "a few": 4}, 4)
    assert by_pairs.options == by_mapping.options and by_pairs.stops == (0, 4)
    assert by_pairs.text(4) == "a few"
    assert by_pairs.widget().value == 4


@given(st.data())
def test_every_stop_is_a_setting_and_a_place_on_the_slider(data):
    integer, log = data.draw(st.booleans()), data.draw(st.booleans())
    numbers = st.integers(1, 10_000) if integer else st.floats(0.01, 1e6)
    low, default, high = sorted(data.draw(st.lists(numbers, min_size=3, max_size=3, unique=True)))
    step = data.draw(
        st.floats(1.5, 10) if log else (st.integers(1, 100) if integer else st.floats((high - low) / 200, 1e6))
    )
    slider = Slider("a", "A", low, high, step, default, log=log)
    assert slider.stops[0] == low and slider.stops[-1] == high
    assert list(slider.stops) == sorted(set(slider.stops))
    assert all(slider.clean(stop) == stop and slider.at_stop(stop) == stop for stop in slider.stops)
    widget = slider.widget()
    assert widget.value == slider.default
    for stop in (slider.stops[0], slider.stops[-1], slider.stops[len(slider.stops) // 2]):
        widget.value = stop
        assert widget.value == stop and type(widget.value) is type(slider.clean(stop))


def test_what_a_browser_adds_up_is_the_stop_that_was_meant():
    slider = Slider("rate", "Rate", 0.5, 20.0, 0.5, 6.0)
    assert slider.clean(4.500000000000001) == 4.5 and slider.clean(9.999999999999998) == 10.0
    assert slider.clean(4.5001) == 4.5001  # a setting from a cell may lie between two stops
    tenths = Slider("share", "Share", 0.0, 1.0, 0.1, 0.5)
    added = 0.0
    for stop in tenths.stops[:-1]:
        assert tenths.clean(added) == stop
        added += 0.1
    assert tenths.clean(1 - 0.1 * 10 + 1e-17) == 0.0
    assert Slider("delay", "Delay", 0.1, 10.0, 10, 1.0, log=True).clean(0.1 + 0.2 - 0.2) == 0.1


def test_readouts_have_the_digits_of_their_step():
    assert Slider("a", "A", 0.0, 1.0, 0.25, 0.5).widget().readout_format == ",.2f"
    assert Slider("a", "A", 0.0, 1.0, 0.1, 0.5).widget().readout_format == ",.1f"
    assert Slider("a", "A", 0.0, 100.0, 5, 50).widget().readout_format == ",.0f"
    assert Slider("a", "A", 0, 10_000, 5, 50).widget().readout_format == ",d"


def test_tables_of_several_columns():
    rows = rows_of([("", "static", "continuous"), ("p99", 1.5, "0.2 s"), ("requests", 2000, 10_000)])
    assert text_table(rows).splitlines() == [
        "          static  continuous",
        "p99          1.5       0.2 s",
        "requests   2,000      10,000",
    ]
    html = html_table(rows, "Result")
    assert html.count('scope="col"') == 3 and html.count('scope="row"') == 2 and 'aria-label="Result"' in html


@pytest.mark.parametrize("summary", [[("a",)], [("a", 1), ("b", 1, 2)], [()]])
def test_ragged_tables_are_refused(summary):
    with pytest.raises(ValueError, match="give each a label"):
        rows_of(summary)


def test_the_caption_of_a_table_is_seen_and_said_once():
    """Where the numbers come from: in sight, and for a screen reader the name of the table."""
    shown = table([("", "a"), ("b", "1")], "Two & three [recorded: a card]")._repr_mimebundle_()["text/html"]
    seen, _, grid = shown.partition("<table")
    assert seen.count("Two &amp; three [recorded: a card]") == 1 and 'aria-hidden="true"' in seen
    assert 'aria-label="Two &amp; three [recorded: a card]"' in grid


def test_an_empty_summary_is_no_table():
    assert text_table(rows_of([])) == html_table(rows_of([]), "x") == ""


def test_warnings_are_found_in_runs_side_by_side():
    class Run:
        def __init__(self, *warnings):
            self.warnings = warnings

    assert warnings_of(Run("a", "b")) == ("a", "b")
    assert warnings_of({"static": Run("slow"), "continuous": Run()}) == ("static: slow",)
    both = {"static": Run("slow", "late"), "dynamic": Run("slow"), "continuous": Run()}
    assert warnings_of(both) == ("static, dynamic: slow", "static: late")
    assert warnings_of([Run("a"), Run("a")]) == ("a",)
    assert warnings_of({"warnings": "one sentence"}) == ("one sentence",)
    assert warnings_of(3) == warnings_of(Run()) == warnings_of({"x": 1}) == ()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ValueError("rate must be positive"), "Rate must be positive."),
        (ValueError("max_num_seqs = 0 is too small."), "max_num_seqs = 0 is too small."),
        (ValueError(""), "This setting failed with ValueError. Move back, or press Reset."),
        (KeyError("x"), "This setting failed with KeyError: 'x'. Move back, or press Reset."),
    ],
)
def test_failures_in_words(error, says):
    assert failure(error) == says


def test_pictures_are_plain_json_without_nan():
    drawn = go.Figure(layout={"height": 300})
    drawn.add_scatter(x=[1, 2, 3], y=[1.0, math.nan, math.inf])
    drawn.add_scatter(x=np.arange(3.0), y=np.array([1.0, math.nan, 2.0]))
    traces, layout = picture(drawn)
    assert traces[0]["y"] == [1.0, None, None]
    assert traces[1]["y"]["dtype"] == "f8", "arrays travel in plotly's binary form"
    json.dumps([traces, layout], allow_nan=False)
    assert layout["uirevision"], "a zoom survives the next move"


def test_only_the_first_drawing_brings_the_library(monkeypatch):
    monkeypatch.setattr(Drawing, "_carried", False)
    first, second = Plot(go.Figure()).drawing, Plot(go.Figure()).drawing
    assert len(first.plotlyjs) > 1_000_000 and second.plotlyjs == b""


def test_a_browser_without_the_library_gets_it_for_asking(monkeypatch):
    monkeypatch.setattr(Drawing, "_carried", True)
    drawing = Plot(go.Figure()).drawing
    for message in ({"want": "something else"}, "text", None):
        drawing._handle_custom_msg(message, [])
        assert drawing.plotlyjs == b""
    drawing._handle_custom_msg({"want": "plotly"}, [])
    assert b"Plotly" in drawing.plotlyjs[:2_000]


def test_what_changes_is_not_in_the_widget_that_anywidget_may_give_up():
    (canvas,) = Plot(go.Figure()).children
    assert set(canvas.keys) - set(widgets.DOMWidget().keys) == {"drawing_id", "_esm", "_anywidget_id"}


@pytest.mark.parametrize(
    ("low", "high", "step", "log"), [(0, 10**8, 1, False), (0.0, 1.0, 1e-12, False), (1.0, 10.0, 1 + 1e-9, True)]
)
def test_a_slider_with_endless_stops_is_refused(low, high, step, log):
    with pytest.raises(ValueError, match="stops"):
        Slider("a", "A", low, high, step, low, log=log)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("1 sequences", "1 sequence"), ("at 1 requests/s", "at 1 request/s"), ("1 slots, 1 drafts", "1 slot, 1 draft"),
        ("11 slots", "11 slots"), ("0.1 steps", "0.1 steps"), ("1,001 tokens", "1,001 tokens"), ("1 loses", "1 loses"),
    ],
)  # fmt: skip
def test_one_of_a_thing_is_said_in_the_singular(said, told):
    assert amounts.singular(said) == told
