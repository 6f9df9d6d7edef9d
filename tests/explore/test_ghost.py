"""What stood before a move: the column, the axes that hold both pictures, and the sentence that says what changed."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from course.explore import Choice, Explorer, Slider, Toggle
from course.explore.ghost import LINE, PALE, Shown, has_ghost, joined, ranges_of, what_changed
from course.explore.plot import picture
from course.explore.table import html_table, short
from tests.helpers.toy_tasks import RATE, SLOTS, explorer

POLICY = Choice("policy", "Policy", ["static", "continuous"], "static")
LINEAR, LOG = "linear", "log"


def sentence(before: Any, now: Any, moved: bool = True) -> str:
    """What is said where these rows stood at 20 and stand at 30 requests/s."""
    settings = ({"rate": 20}, {"rate": 30 if moved else 20})
    return what_changed([RATE], *(Shown(at, tuple(rows)) for at, rows in zip(settings, (before, now), strict=True)))


HEAD = "Arrival rate: 20 → 30 requests/s."


# The sentence


def test_it_names_the_control_and_the_row_that_changed_most():
    before, now = [("load", "0.5"), ("wait", "10 ms")], [("load", "0.75"), ("wait", "40 ms")]
    assert sentence(before, now) == f"{HEAD} Largest change: wait, 10 → 40 ms."
    assert sentence(now, before) == f"{HEAD} Largest change: wait, 40 → 10 ms."


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        (("0.9 s", "1,100 ms"), ("10", "13")),
        (("900 ms", "1.1 s"), ("10", "13")),
        (("1,000 us", "0.001 s"), ("10", "10.1")),
        (("2 min", "121 s"), ("10", "10.2")),
        (("1e-05 s", "2e-05 s"), ("10", "30")),
        (("1,234 tokens", "1,300 tokens"), ("1.00x", "1.10x")),
        (("12 ms", "many"), ("10", "10.1")),
        (("2 MB", "1 GB"), ("10", "10.1")),  # nobody says how many of one are one of the other
        (("10", "11"), ("0", "1")),
        (("10", "11"), ("-1", "1")),
        (("-10", "-11"), ("2", "4")),
        (("nan", "5"), ("1.0", "1.1")),
        (("inf", "5 ms"), ("1.0", "1.1")),
    ],
)
def test_values_are_compared_by_their_ratio_in_one_unit(smaller, larger):
    for swapped in (False, True):
        rows = [("a", smaller), ("b", larger)][:: -1 if swapped else 1]
        said = sentence([(name, cells[0]) for name, cells in rows], [(name, cells[1]) for name, cells in rows])
        assert said == f"{HEAD} Largest change: b, {short(*larger)} → {larger[1]}."


def test_a_text_that_changes_is_a_change():
    assert sentence([("from", "prefill")], [("from", "decode")]).endswith("Largest change: from, prefill → decode.")


def test_every_column_counts_and_is_named():
    heads = ("", "static", "dynamic")
    before = [heads, ("TTFT", "1 s", "1.0 s"), ("+ tokens", "5", "5")]
    now = [heads, ("TTFT", "1 s", "9.5 s"), ("+ tokens", "6", "5")]
    assert sentence(before, now) == f"{HEAD} Largest change: TTFT, dynamic, 1.0 → 9.5 s."
    assert sentence(now, [heads, ("TTFT", "1 s", "9.5 s"), ("+ tokens", "1", "5")]).endswith(
        "Largest change: tokens, static, 6 → 1."
    )
    assert sentence([("", "H100"), ("TTFT", "1 s")], [("", "H100"), ("TTFT", "2 s")]).endswith(
        "Largest change: TTFT, 1 → 2 s."
    )


def test_rows_are_found_by_their_label():
    before = [("a", "1"), ("b", "1")]
    assert sentence(before, [("new", "7"), ("a", "1"), ("b", "5")]).endswith("Largest change: b, 1 → 5.")
    assert sentence(before, [("c", "1"), ("d", "2")]) == f"{HEAD} The table has other rows."
    assert sentence([], before) == f"{HEAD} The table has other rows."


def test_where_nothing_changed():
    same = [("", "now"), ("a", "1 s")]
    assert sentence(same, same) == f"{HEAD} The table stays the same."
    assert sentence(same, [("", "now"), ("a", "2 s")], moved=False) == ""


def test_controls_are_named_as_they_read():
    fast = Toggle("fast", "Fast")
    before, now = ({"slots": slots, "policy": policy, "fast": on} for slots, policy, on in
                   ((8, "static", False), (1, "continuous", True)))  # fmt: skip
    for control, says in (
        (SLOTS, "Slots: 8 → 1."),
        (POLICY, "Policy: static → continuous."),
        (fast, "Fast: off → on."),
    ):
        assert what_changed([control], Shown(before, ()), Shown(now, ())).startswith(says)
    assert what_changed([SLOTS, POLICY], Shown(before, ()), Shown(now, ())).startswith("2 controls moved.")


# Ranges


def test_ranges_that_hold_both():
    one = {"xaxis": (0, 10, ""), "yaxis": (5.0, 1.0, ""), "yaxis2": (-2.0, 1.0, LOG), "xaxis2": (0, 1, "")}
    other = {"xaxis": (-1, 8, ""), "yaxis": (9.0, 2.0, ""), "yaxis2": (-1.0, 3.0, LOG), "xaxis3": (0, 1, "")}
    assert joined(one, other) == {"xaxis": (-1, 10, ""), "yaxis": (9.0, 1.0, ""), "yaxis2": (-2.0, 3.0, LOG)}
    assert joined(one, {}) == joined({}, one) == {}


def test_ranges_that_do_not_go_together_are_left_out():
    """An axis that turned round, and a logarithmic one, whose range is one of exponents."""
    assert joined({"xaxis": (0, 10, "")}, {"xaxis": (10, 0, "")}) == {}
    assert joined({"yaxis": (0, 100, LINEAR)}, {"yaxis": (-1, 2, LOG)}) == {}


def test_ranges_are_read_from_a_layout():
    drawn = go.Figure(
        layout={
            "xaxis": {"range": [0, np.int64(5)]},
            "yaxis": {"range": [-1.5, 3], "type": "log"},
            "xaxis2": {"title": {"text": "no range"}},
            "yaxis2": {"range": [None, 5]},
            "yaxis3": {"range": ["2026-01-01", "2026-02-01"]},
            "title": {"text": "x"},
        }
    )
    assert ranges_of(drawn.to_dict()["layout"]) == {"xaxis": (0, 5, ""), "yaxis": (-1.5, 3, LOG)}


@pytest.mark.parametrize("end", [math.nan, math.inf, -math.inf])
def test_a_range_without_an_end_is_none(end):
    assert ranges_of({"xaxis": {"range": [0.0, end]}}) == {}


# On the screen


def axes(result: dict[str, float]) -> go.Figure:
    """A figure whose axis ends at the load, logarithmic above a load of 1."""
    log = result["load"] > 1
    ends = [-1, math.log10(result["load"])] if log else [0, result["load"]]
    return go.Figure(go.Scatter(x=[1, 2]), layout={"yaxis": {"range": ends, "type": LOG if log else LINEAR}})


def shown(**other: Any) -> Any:
    made = explorer((), **{"figure": axes} | other)
    made._repr_mimebundle_()
    return made.view


def ends(view: Any) -> list[float]:
    return view.plot.drawing.plot_layout["yaxis"]["range"]


def test_the_axes_hold_both_pictures_while_the_ghost_stands_and_reset_gives_them_back():
    view = shown()
    assert ends(view) == [0, 0.5] and view.plot.drawing.move == 0
    view.controls["rate"].value = 10
    assert ends(view) == [0, 0.5] and view.plot.drawing.move == 1, "the picture before is the taller one"
    view.controls["rate"].value = 40
    assert ends(view) == [0, 1.0] and view.plot.drawing.move == 2
    view.controls["rate"].value = 30
    assert ends(view) == [0, 1.0]
    first = shown()
    view.reset.click()
    assert ends(view) == [0, 0.5] and view.plot.drawing.move == 0 and view.changed.value == ""
    assert view.plot.drawing.plot_layout == first.plot.drawing.plot_layout
    assert view.plot.traces == first.plot.traces and view.table.value == first.table.value
    view.controls["rate"].value = 10
    assert ends(view) == [0, 0.5] and view.plot.drawing.move == 4, "another number: what is drawn becomes the ghost"


def test_an_axis_that_becomes_logarithmic_is_not_stretched():
    view = shown()
    view.controls["rate"].value = 50
    assert ends(view) == [-1, math.log10(50 / 40)] and view.plot.drawing.plot_layout["yaxis"]["type"] == LOG
    view.controls["rate"].value = 20
    assert ends(view) == [0, 0.5]


def before(view: Any) -> list[str]:
    return re.findall(r'class="course-before">([^<]*)<', view.table.value)


def test_the_column_shows_the_setting_before_and_a_sentence_says_what_changed():
    view = shown()
    assert before(view) == ["before", "", ""] and view.changed.value == ""
    view.controls["rate"].value = 10
    assert before(view) == ["before", "0.500", "20 ms"]
    assert "Arrival rate: 20 → 10 requests/s. Largest change: " in view.changed.value
    assert 'role="status"' in view.changed.value
    view.controls["rate"].value = 40
    assert before(view) == ["before", "0.250", "10 ms"]
    view.reset.click()
    assert before(view) == ["before", "", ""] and view.changed.value == ""


def test_where_a_ghost_stands_and_has_room_the_sentence_says_what_is_pale():
    view = shown()
    view.controls["rate"].value = 10
    assert f"{PALE}<" in view.changed.value
    named = [Slider("rate", "Rate of arrivals at the door " * 4, 0, 50, 1, 20)]
    long = Explorer(lambda rate: rate, named, lambda _: go.Figure(go.Scatter(y=[1])), lambda rate: [("a", rate)])
    long.set(rate=1)
    assert PALE not in long.view.changed.value and len(long.view.changed.value) > LINE
    bars = shown(figure=lambda _: go.Figure(go.Bar(y=[1, 2])))
    bars.controls["rate"].value = 10
    assert "20 → 10 requests/s" in bars.changed.value and PALE not in bars.changed.value


def test_a_panel_of_bars_or_tiles_has_no_ghost():
    line, bar, other = {"type": "scatter"}, {"type": "bar"}, {"type": "scatter", "xaxis": "x2", "yaxis": "y2"}
    assert has_ghost([line]) and has_ghost([bar, other]) and has_ghost([line, bar, other])
    assert not has_ghost([bar]) and not has_ghost([bar, line]) and not has_ghost([{"type": "heatmap"}])


def test_a_setting_that_failed_leaves_no_ghost():
    def fails(rate: int, slots: int) -> dict[str, float]:
        if rate == 13:
            raise ValueError("13 does not work: move on")
        return {"load": rate / 40, "wait": 0.0}

    view = shown(simulate=fails)
    view.controls["rate"].value = 13
    assert view.changed.value == ""
    view.controls["rate"].value = 10
    assert before(view) == ["before", "0.500", "0 ms"] and "20 → 10 requests/s" in view.changed.value


def test_wide_rows_say_what_was_in_the_cell_that_changed():
    heads, was, now = ("", "a", "b", "c"), ("t", "1 ms", "2 ms", "3 s"), ("t", "1 ms", "5 ms", "900 ms")
    html = html_table((heads, now), "x", (heads, was))
    assert re.findall(r'course-before"> was ([^<]*)<', html) == ["2", "3 s"]
    assert "course-before" not in html_table((heads, now), "x", ()) and "before<" not in html


# What travels


def test_numbers_that_are_none_are_nowhere_in_what_travels():
    drawn = go.Figure(layout={"shapes": [{"x0": math.nan, "y0": 1}], "annotations": [{"x": math.inf, "text": "a"}]})
    drawn.add_heatmap(z=[[1.0, math.nan], [math.inf, 2.0]])
    drawn.add_scatter(y=[1.0], marker={"color": [math.nan]}, error_y={"array": [math.inf]}, customdata=[[math.nan]])
    traces, layout = picture(drawn)
    json.dumps([traces, layout], allow_nan=False)
    assert traces[0]["z"] == [[1.0, None], [None, 2.0]] and layout["annotations"][0]["x"] is None


def test_a_summary_and_a_figure_of_no_numbers_are_shown():
    odd = Explorer(
        lambda rate: math.nan if rate > 30 else math.inf,
        [RATE],
        lambda result: go.Figure(go.Scatter(y=[result]), layout={"yaxis": {"range": [0, result]}}),
        lambda result: [("value", result)],
    )
    assert "value  inf" in odd.text()
    odd._repr_mimebundle_()
    odd.view.controls["rate"].value = 31
    assert odd.view.error is None and odd.view.plot.traces[0]["y"] == [None]
    assert "Largest change: value, inf → nan." in odd.view.changed.value
