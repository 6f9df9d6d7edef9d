"""Explorers: settings are checked, the text is stable, the newest setting wins, and failures are sentences."""

from __future__ import annotations

import asyncio
import gc
import math
import weakref

import ipywidgets as widgets
import numpy as np
import plotly.graph_objects as go
import pytest

from course.explore import Explorer, Slider
from course.explore.plot import Drawing, Plot
from course.explore.view import set_aside
from tests.helpers.toy_explorer import CHUNKED, CV, POLICY, RATE, SLOTS, Simulation, figure, summary

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def simulation():
    return Simulation()


@pytest.fixture
def explorer(simulation):
    return Explorer(simulation, [RATE, SLOTS, CV, POLICY, CHUNKED], figure, summary, title="One server")


# Settings


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"rat": 3}, "no control 'rat': choose from rate, max_num_seqs, cv, policy, chunked"),
        ({"rate": 0}, "outside its limits: choose between 1 and 50 requests/s"),
        ({"rate": 51}, "outside"),
        ({"rate": -1}, "outside"),
        ({"rate": 10**400}, "too large"),
        ({"rate": math.nan}, "not finite"),
        ({"cv": math.inf}, "not finite"),
        ({"rate": 3.5}, "not whole"),
        ({"rate": "20"}, "not a number"),
        ({"rate": None}, "not a number"),
        ({"rate": True}, "not a number"),
        ({"rate": [20]}, "not a number"),
        ({"cv": 1 + 0j}, "not a number"),
        ({"policy": "dynamic"}, "choose one of 'static', 'continuous'"),
        ({"policy": None}, "not an option"),
        ({"policy": np.array([1, 2])}, "not an option"),
        ({"chunked": 1}, "neither True nor False"),
        ({"chunked": "yes"}, "neither True nor False"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(explorer, simulation, bad, says):
    for call in (explorer.compute, explorer.set):
        with pytest.raises(ValueError) as caught:
            call(**bad)
        assert says in str(caught.value)
    assert not simulation.calls


def test_compute_needs_no_widget(explorer, simulation):
    explorer.compute(rate=10, cv=2)
    assert explorer.view is None
    assert simulation.calls == [{"rate": 10, "max_num_seqs": 32, "cv": 2.0, "policy": "continuous", "chunked": True}]


def test_settings_keep_their_kind(explorer, simulation):
    explorer.compute(rate=np.int64(10), cv=np.float32(2), chunked=np.bool_(False))
    explorer.compute(rate=10.0, max_num_seqs=np.float64(7), cv=3)
    for call in simulation.calls:
        assert [type(value) for value in call.values()] == [int, int, float, str, bool]


def test_the_widgets_give_the_same_kinds(explorer, simulation):
    explorer.set(rate=10, max_num_seqs=64, cv=0.25, policy="static", chunked=False)
    assert [type(value) for value in simulation.calls[-1].values()] == [int, int, float, str, bool]
    assert list(simulation.calls[-1].values()) == [10, 64, 0.25, "static", False]


def test_between_two_stops_of_a_log_slider(explorer):
    assert explorer.compute(max_num_seqs=3)["load"] == pytest.approx(20 / 3)
    with pytest.raises(ValueError, match="between two stops: choose one of 1, 2, 4"):
        explorer.set(max_num_seqs=3)


# What is shown


def test_the_text_is_the_table_at_the_default_settings(explorer):
    assert repr(explorer).splitlines() == [
        "One server [modelled]",
        "At the start: Arrival rate 20 requests/s, Slots 32, Variation 1, Policy continuous, Chunked prefill on",
        "  load         0.625",
        "  policy  continuous",
    ]


def test_text_and_view_come_in_one_bundle_and_the_text_never_moves(explorer):
    first = explorer._repr_mimebundle_()
    explorer.set(rate=5, policy="static")
    second = explorer._repr_mimebundle_()
    assert set(first) == {"text/plain", WIDGET_VIEW}
    assert first["text/plain"] == second["text/plain"] == repr(explorer)
    assert first[WIDGET_VIEW]["model_id"] not in first["text/plain"]


def test_each_display_has_widgets_of_its_own(explorer, simulation):
    ids = {explorer._repr_mimebundle_()[WIDGET_VIEW]["model_id"] for _ in range(3)}
    assert len(ids) == 3
    before = len(simulation.calls)
    explorer.view.controls["rate"].value = 21
    assert len(simulation.calls) == before + 1, "one move, one run, however often the cell ran"


def test_no_collection_during_a_move_goes_over_what_stood_before_the_display(explorer):
    class Node:
        pass

    set_aside.cache_clear()  # as in a new kernel
    kept, lost = Node(), Node()
    lost.itself = lost
    garbage = weakref.ref(lost)
    del lost
    explorer.new_view()
    assert garbage() is None
    assert not any(found is kept for found in gc.get_objects())  # what the collector goes over
    later = Node()
    later.itself = later
    garbage = weakref.ref(later)
    explorer.new_view()
    del later
    gc.collect()
    assert garbage() is None, "what comes after the first display is collected as ever"


def test_the_default_run_is_computed_once(explorer, simulation):
    explorer._repr_mimebundle_(), repr(explorer), explorer._repr_mimebundle_()
    assert len(simulation.calls) == 1


def widgets_of(root, kind):
    found = [root] if isinstance(root, kind) else []
    for child in getattr(root, "children", ()):
        found += widgets_of(child, kind)
    return found


def test_everything_is_on_the_screen(explorer):
    explorer._repr_mimebundle_()
    root = explorer.view.root
    sliders = [w for w in explorer.view.controls.values() if hasattr(w, "continuous_update")]
    assert all(slider.continuous_update for slider in sliders), "key presses act at once"
    assert [w.description for w in explorer.view.controls.values()] == [
        "Arrival rate (requests/s)",
        "Slots",
        "Variation",
        "Policy",
        "Chunked prefill",
    ]
    html = " ".join(w.value for w in widgets_of(root, widgets.HTML))
    for text in ("One server", "modelled", "0.625", "Run &gt; Run All Above Selected Cell"):
        assert text in html
    assert len(widgets_of(root, Plot)) == 1


# Moving


def test_set_moves_the_controls_and_returns_the_result(explorer):
    assert explorer.set(rate=10)["load"] == 10 / 32
    assert explorer.set(policy="static") == {"load": 10 / 32, "policy": "static", "warnings": ()}
    assert explorer.view.controls["rate"].value == 10
    assert "0.312" in explorer.view.table.value
    assert explorer.view.plot.traces[0]["y"] == [0.0, 10 / 32]
    assert [trace["type"] for trace in explorer.view.plot.traces] == ["scatter", "bar"]
    explorer.set(policy="continuous")
    assert [trace["type"] for trace in explorer.view.plot.traces] == ["scatter"]


def test_several_settings_are_one_run(explorer, simulation):
    explorer._repr_mimebundle_()
    before = len(simulation.calls)
    explorer.set(rate=10, cv=2.0, policy="static")
    assert len(simulation.calls) == before + 1


def test_reset_goes_back(explorer):
    explorer.set(rate=10, policy="static")
    explorer.view.reset.click()
    assert explorer.view.settings == explorer.defaults
    assert "0.625" in explorer.view.table.value


def test_a_browsers_rounding_is_no_move(explorer):
    """It adds steps up in binary, and sends the slider's own value back so as it opens."""
    explorer._repr_mimebundle_()
    explorer.view.controls["cv"].value = 1.0000000000000002
    assert explorer.view.settings == explorer.defaults
    assert explorer.view.changed.value == ""


def test_only_what_changed_is_sent(explorer, monkeypatch):
    explorer._repr_mimebundle_()
    sent = []
    monkeypatch.setattr(Drawing, "send_state", lambda self, key=None: sent.append(set(key)))
    explorer.set(rate=10)
    assert sent == [{"traces", "move"}], "one message, without the layout, which is the same"
    sent.clear()
    explorer.set(rate=10)
    assert sent in ([], [set()]), "nothing has changed"


@pytest.mark.parametrize(
    ("slider", "name"),
    [
        (Slider("a", "A", 0.0, 9.0, 0.5, 1.0), "value"),
        (Slider("a", "A", 0, 9, 1, 1), "value"),
        (Slider("a", "A", 1, 512, 2, 1, log=True), "index"),
    ],
)
def test_a_slider_is_not_told_what_it_has_just_said(slider, name, monkeypatch):
    sent = []
    monkeypatch.setattr(widgets.Widget, "_send", lambda self, message, buffers=None: sent.append(message))
    widget = slider.widget()
    widget.set_state({name: 3})
    assert getattr(widget, name) == 3
    assert not sent


def test_the_newest_setting_wins(explorer, simulation, clock):
    explorer._repr_mimebundle_()
    before = len(simulation.calls)

    async def move():
        for rate in range(21, 31):
            explorer.view.controls["rate"].value = rate
        explorer.view.controls["cv"].value = 2.0
        assert len(simulation.calls) == before + 1, "only the first runs while messages are still being read"
        await asyncio.sleep(0.1)

    clock.run(move())
    assert [(call["rate"], call["cv"]) for call in simulation.calls[before:]] == [(21, 1.0), (30, 2.0)]


def test_moves_during_a_run_are_joined_into_one_more(explorer, simulation, clock):
    explorer._repr_mimebundle_()
    seen = []

    async def move():
        control = explorer.view.controls["rate"]
        for rate in (21, 22, 23, 24, 25):
            control.value = rate
            # As in a kernel: the message after a run arrives first, the newest one a moment later.
            await asyncio.sleep(0.003)
        await asyncio.sleep(0.1)
        seen.extend(call["rate"] for call in simulation.calls[1:])

    clock.run(move())
    assert seen[0] == 21 and seen[-1] == 25 and len(seen) < 5


def test_set_runs_at_once_inside_a_running_kernel(explorer, simulation, clock):
    async def cell():
        explorer._repr_mimebundle_()
        explorer.view.controls["rate"].value = 30  # runs at once
        explorer.view.controls["rate"].value = 29  # waits
        assert explorer.set(rate=7)["load"] == 7 / 32
        runs = len(simulation.calls)
        await asyncio.sleep(0.05)
        assert len(simulation.calls) == runs, "the move before is covered by the call"

    clock.run(cell())


# Failing


def test_a_refusal_is_a_sentence_and_the_next_move_recovers(explorer):
    explorer._repr_mimebundle_()
    explorer.view.controls["rate"].value = 50
    view = explorer.view
    assert "Rate 50 is above the capacity of 40 requests/s: lower it." in view.notice.value
    assert view.table.value == "" and "course-stale" in view.plot._dom_classes
    view.controls["rate"].value = 40
    assert "Rate 50" not in view.notice.value and "1.250" in view.table.value
    assert "course-stale" not in view.plot._dom_classes and view.error is None


def test_any_error_is_a_sentence(explorer):
    explorer._repr_mimebundle_()
    explorer.view.controls["rate"].value = 13
    assert "failed with ZeroDivisionError: division by zero. Move back" in explorer.view.notice.value


def test_set_raises_what_the_explorer_shows(explorer):
    with pytest.raises(ValueError, match="above the capacity"):
        explorer.set(rate=50)
    assert "above the capacity" in explorer.view.notice.value
    assert explorer.set(rate=20)["load"] == 0.625


def test_warnings_are_shown_and_go_away(explorer):
    explorer.set(rate=31)
    assert "close to capacity" in explorer.view.notice.value
    explorer.set(rate=20)
    assert explorer.view.notice.value == ""


@pytest.mark.parametrize("part", ["simulate", "figure", "summary"])
def test_a_failure_at_the_default_settings_leaves_working_controls(part):
    def fails_at_20(value):
        if value == 20:
            raise ValueError("20 does not work: move away")
        return value

    parts = {
        "simulate": lambda rate: rate,
        "figure": lambda rate: go.Figure(),
        "summary": lambda rate: [("rate", str(rate))],
    }
    working = parts[part]
    parts[part] = lambda rate: working(fails_at_20(rate))
    explorer = Explorer(parts["simulate"], [RATE], parts["figure"], parts["summary"])
    assert "20 does not work: move away." in explorer._repr_mimebundle_()["text/plain"] or part == "figure"
    assert "20 does not work" in explorer.view.notice.value
    explorer.set(rate=21)
    assert explorer.view.notice.value == "" and "21" in explorer.view.table.value


def test_html_in_results_is_text(explorer):
    shown = Explorer(lambda rate: rate, [RATE], lambda r: go.Figure(), lambda r: [("<b>", "<i>")], title="<u>")
    shown._repr_mimebundle_()
    html = shown.view.table.value + shown.view.root.children[0].children[0].value
    assert "<b>" not in html.replace("<b>&lt;u&gt;</b>", "") and "<i>" not in html and "&lt;i&gt;" in html


def test_a_figure_function_that_returns_no_figure_is_named():
    explorer = Explorer(lambda rate: rate, [RATE], lambda result: None, lambda result: [("rate", str(result))])
    explorer._repr_mimebundle_()
    assert "returned NoneType, not a plotly figure" in explorer.view.notice.value
