"""The look of the figures: colours that can be told apart and read, units on every axis, stable numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.figures import theme


def test_every_meaning_has_a_colour_of_its_own():
    assert len(set(theme.COLOURS.values())) == len(theme.COLOURS)
    with pytest.raises(TypeError):
        theme.COLOURS["prefill"] = "#000000"


@pytest.mark.parametrize("name", theme.COLOURS)
def test_labels_are_readable_and_lines_visible_on_white(name):
    # WCAG 2.2 asks for 4.5 for text. Sky blue and orange are light as areas; 2.0 still shows them on white.
    assert theme.contrast(theme.ink(name)) >= 4.5
    assert theme.contrast(theme.COLOURS[name]) >= 2.0


def test_contrast_of_black_and_white_is_21():
    assert theme.contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert theme.contrast("#FFFFFF", "#000000") == pytest.approx(21)
    # A mid grey, worked by hand from the definition: ((0x77/255 + 0.055)/1.055)^2.4 = 0.1845, 1.05/0.2345 = 4.48.
    assert theme.contrast("#777777") == pytest.approx(4.48, abs=0.01)


def test_ink_leaves_dark_colours_alone():
    assert theme.ink("#000000") == "#000000"
    assert theme.ink("decode") == theme.COLOURS["decode"]


@pytest.mark.parametrize("colour", ["prefil", "#12", "#GGGGGG", "0072B2", ""])
def test_no_colour_is_refused(colour):
    with pytest.raises(ValueError, match="is not a colour"):
        theme.ink(colour)


def test_colours_stay_apart_for_colour_blind_readers():
    """Pairs drawn in one figure keep a distance under the common kinds of colour blindness (Machado et al. 2009)."""
    kinds = {
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    }

    def seen(name: str, matrix: list[list[float]]) -> np.ndarray:
        code = theme.COLOURS[name]
        return np.array(matrix) @ np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)], dtype=float)

    work, policies = ("prefill", "decode", "waiting", "wasted"), ("static", "dynamic", "continuous")
    for matrix in kinds.values():
        for group in (work, policies):
            for i, a in enumerate(group):
                for b in group[i + 1 :]:
                    # 40 of 255 in RGB: two swatches side by side are told apart at a glance.
                    assert np.linalg.norm(seen(a, matrix) - seen(b, matrix)) > 40, (a, b)


def test_template_is_small_and_readable():
    size = len(json.dumps(theme.TEMPLATE.to_plotly_json()))
    assert size < 1_000, "every stored figure repeats the template; plotly's own has 7 KB"
    assert theme.TEMPLATE.layout.font.size >= 14
    assert theme.TEMPLATE.layout.showlegend is False


@pytest.mark.parametrize("title", ["time [s]", "queue (requests)", "utilisation [share]", " time [s] "])
def test_axis_titles_with_a_unit(title):
    assert theme.new_figure(title, "wait [s]").layout.xaxis.title.text == title.strip()


@pytest.mark.parametrize("title", ["time", "", "time []", "time [s", "[", None, "rate (requests/s) of users"])
def test_axis_titles_without_a_unit_are_refused(title):
    with pytest.raises(ValueError, match="names no unit"):
        theme.new_figure(title, "wait [s]")
    with pytest.raises(ValueError, match="y axis"):
        theme.new_figure("time [s]", title)


def test_layout_settings_pass_through():
    figure = theme.new_figure("rate [requests/s]", "p99 [s]", height=300, yaxis_type="log", xaxis_range=[0, 3])
    assert (figure.layout.height, figure.layout.yaxis.type, figure.layout.xaxis.range) == (300, "log", (0, 3))
    assert figure.layout.yaxis.title.text == "p99 [s]"


def test_layout_settings_are_laid_over_the_axes():
    """The same as plotly's own `update_layout`, which is slower."""
    layout = {
        "xaxis_title_font_size": 20,
        "yaxis": {"type": "log", "range": [0, 2], "title": {"standoff": 3}},
        "plot_bgcolor": "#EEEEEE",
        "margin": {"r": 90},
        "annotations": [{"text": "here", "x": 1, "y": 2}],
    }
    plain = theme.new_figure("rate [requests/s]", "p99 [s]").update_layout(**layout)
    assert theme.new_figure("rate [requests/s]", "p99 [s]", **layout).to_dict() == plain.to_dict()
    with pytest.raises(ValueError, match="nonsense"):
        theme.new_figure("rate [requests/s]", "p99 [s]", nonsense=3)


def test_one_figure_of_panels_does_not_touch_the_next():
    first = theme.new_panels("time [s]", ["a [1]", "b [1]"])
    first.add_scatter(y=[1, 2], row=2, col=1)
    theme.label_line(first, 1, 1, "here", row=1, col=1)
    second = theme.new_panels("time [s]", ["a [1]", "b [1]"], height=500, yaxis_type="log")
    third = theme.new_panels("time [s]", ["a [1]", "b [1]"])
    assert len(third.data) == 0 and not third.layout.annotations and third.layout.yaxis.type is None
    assert second.layout.height == 500 and first.data[0].yaxis == "y2"


def test_panels_share_the_x_axis():
    figure = theme.new_panels("time [s]", ["a [slots]", "b [slots]", "c [slots]"], titles=["A", "B", "C"], height=600)
    assert [axis.title.text for axis in figure.select_yaxes()] == ["a [slots]", "b [slots]", "c [slots]"]
    assert [axis.title.text for axis in figure.select_xaxes()] == [None, None, "time [s]"]
    assert figure.layout.xaxis.matches == figure.layout.xaxis2.matches == "x3"
    assert [note.text for note in figure.layout.annotations] == ["A", "B", "C"]
    assert figure.layout.template.layout.font.size >= 14
    with pytest.raises(ValueError, match="names no unit"):
        theme.new_panels("time [s]", ["a [slots]", "b"])


def test_label_beside_a_line():
    figure = theme.new_figure("time [s]", "wait [s]")
    theme.label_line(figure, 10, 2.5, "p99", "static")
    theme.label_line(figure, 10, 2.5, "p50", "#000000", anchor="right")
    left, right = figure.layout.annotations
    assert (left.x, left.y, left.text, left.xanchor, left.xshift) == (10, 2.5, "p99", "left", 6)
    assert left.font.color == theme.ink("static") and left.showarrow is False
    assert (right.xanchor, right.xshift, right.font.color) == ("right", -6, "#000000")


def test_label_on_a_log_axis_takes_the_value_itself():
    figure = theme.new_figure("slots [1]", "time [s]", xaxis_type="log")
    theme.label_line(figure, 100, 7, "here")
    assert (figure.layout.annotations[0].x, figure.layout.annotations[0].y) == (2, 7)


def test_label_in_a_panel():
    figure = theme.new_panels("time [s]", ["a [1]", "b [1]"], yaxis2_type="log")
    theme.label_line(figure, 5, 1000, "low", row=2, col=1)
    note = figure.layout.annotations[0]
    assert (note.xref, note.yref, note.x, note.y) == ("x2", "y2", 5, 3)


def test_rounded_by_hand():
    assert theme.round_digits([0.1 + 0.2, 1 / 3, 123456789, -2.5e-9, 0]) == [0.3, 0.333333, 123457000.0, -2.5e-9, 0.0]
    assert theme.round_digits(np.array([1234.5678, 2.0]), digits=3) == [1230.0, 2.0]
    assert theme.round_digits([math.nan, math.inf, 1]) == [None, None, 1.0]
    assert theme.round_digits([]) == []
    assert theme.round_digits(x / 2 for x in range(3)) == [0.0, 0.5, 1.0]


def test_rounded_refuses_a_table():
    with pytest.raises(ValueError, match="one-dimensional"):
        theme.round_digits(np.zeros((2, 2)))


@given(st.lists(st.floats(-1e300, 1e300), max_size=20), st.integers(1, 12))
def test_rounded_is_close_and_settles(values, digits):
    once = theme.round_digits(values, digits)
    # Six digits kept means an error of at most half a unit in the sixth: 5 * 10^-6 of the value.
    for value, result in zip(values, once, strict=True):
        assert abs(result - value) <= 5.000001 * 10.0**-digits * abs(value) + 5e-324
    assert theme.round_digits(once, digits) == once
    json.dumps(once, allow_nan=False)


@pytest.mark.parametrize("kind", theme.BADGES)
def test_badges_say_where_numbers_come_from(kind):
    assert kind in theme.badge_html(kind) and theme.BADGES[kind] in theme.badge_html(kind)
    detailed = theme.badge_html(f"{kind}: H100 <SXM>")
    assert "H100 &lt;SXM&gt;" in detailed and theme.BADGES[kind] not in detailed
