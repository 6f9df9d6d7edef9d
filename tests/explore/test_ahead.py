"""The next stop of a slider is computed while nothing moves, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from course.explore import Choice, Explorer, Slider, Toggle
from course.explore.ahead import QUIET, Ahead, next_stop
from course.explore.latest import JUST_ENDED
from course.explore.live import LiveExplorer
from course.figures.theme import new_figure
from tests.explore.conftest import Clock

RATE, CV = Slider("rate", "Rate", 1, 9, 1, 5), Slider("cv", "CV", 0, 4, 0.5, 1.0)
KIND, ON = Choice("kind", "Kind", [("a", "a"), ("b", "b"), ("c", "c")], "a"), Toggle("on", "On", False)
CONTROLS = (RATE, CV, KIND, ON)
AT = {"rate": 5.0, "cv": 1.0, "kind": "a", "on": False}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"rate": 4.0}, {}, {"rate": 6.0}),
        ({"rate": 6.0}, {}, {"rate": 4.0}),
        ({"kind": "a"}, {"kind": "b"}, {"kind": "c"}),
        ({"rate": 8.0}, {"rate": 9.0}, None),
        ({"cv": 0.5}, {"cv": 0.0}, None),
        ({"rate": 3.0}, {}, None),
        ({}, {}, None),
        ({"rate": 4.0, "cv": 0.5}, {}, None),
        ({"rate": 4.5}, {}, None),
        ({}, {"on": True}, None),
    ],
)
def test_the_next_stop_is_one_more_step_of_the_same_control(before, now, expected) -> None:
    found = next_stop(CONTROLS, AT | before, AT | now)
    assert found == (None if expected is None else AT | now | expected)


class Simulation:
    """Knows what it was asked."""

    def __init__(self) -> None:
        self.calls: list[float] = []

    def __call__(self, rate: float, cv: float) -> float:
        self.calls.append(rate)
        if rate == 8:
            raise ValueError("8 is too many")
        return rate * 10 + cv


def explorer(simulation: Simulation, kind: type[Explorer] = Explorer) -> Explorer:
    shared = {
        "controls": (RATE, CV),
        "figure": lambda result: new_figure("time [s]", "load [1]"),
        "summary": lambda result: [("result", f"{result:g}")],
    }
    made = Explorer(simulation, **shared)
    made = made if kind is Explorer else LiveExplorer(made, simulation, **shared)
    made._repr_mimebundle_()
    simulation.calls.clear()
    return made


Hand = Callable[..., None]


@pytest.fixture
def moved(clock: Clock) -> Hand:
    """Moves the rate to each of these, with a pause after each; a run takes no time."""

    async def hand(made: Explorer, moves: tuple[float, ...], wait: float) -> None:
        for rate in moves:
            made.view.controls["rate"].value = rate
            await asyncio.sleep(wait)

    return lambda made, *moves, wait=2 * QUIET: clock.run(hand(made, moves, wait))


def test_a_press_that_goes_on_finds_its_run_done(moved: Hand) -> None:
    simulation = Simulation()
    made = explorer(simulation)
    moved(made, 6, 7)
    # 7 was computed ahead and shown; 8 is computed ahead of a press that does not come, and its error is nobody's.
    assert simulation.calls == [6, 7, 8]
    assert made.view.settings["rate"] == 7 and made.view.result == 71 and made.view.error is None
    assert "71" in made.view.table.value


def test_a_press_that_turns_round_computes_its_own(moved: Hand) -> None:
    simulation = Simulation()
    made = explorer(simulation)
    moved(made, 6, 5)
    assert simulation.calls == [6, 7, 5, 4] and made.view.result == 51


def test_what_fails_ahead_fails_for_who_goes_there(moved: Hand) -> None:
    simulation = Simulation()
    made = explorer(simulation)
    moved(made, 6, 7, 8)
    assert simulation.calls == [6, 7, 8, 8]
    assert "8 is too many" in made.view.notice.value
    moved(made, 7)
    assert simulation.calls[4:] == [7] and made.view.result == 71, "nothing is known of the way after an error"


def test_another_control_in_between_makes_it_useless(moved: Hand) -> None:
    simulation = Simulation()
    made = explorer(simulation)
    moved(made, 6)
    made.view.controls["cv"].value = 3.0
    moved(made, 7)
    assert simulation.calls == [6, 7, 6, 7, 8] and made.view.result == 73


def test_nothing_is_computed_ahead_while_the_slider_moves(moved: Hand) -> None:
    simulation = Simulation()
    moved(explorer(simulation), 6, 7, 8, 7, 6, wait=JUST_ENDED)
    assert simulation.calls[:5] == [6, 7, 8, 7, 6]


@pytest.mark.parametrize("why", ["it measures", "it is slow"])
def test_what_measures_or_takes_long_is_not_run_unasked(monkeypatch: pytest.MonkeyPatch, moved: Hand, why: str) -> None:
    simulation = Simulation()
    made = explorer(simulation, LiveExplorer if why == "it measures" else Explorer)
    if why == "it is slow":
        monkeypatch.setattr("course.explore.view.QUICK", -1.0)
    moved(made, 6, 7)
    assert simulation.calls == [6, 7]


def test_a_way_that_gets_slower_is_left(monkeypatch: pytest.MonkeyPatch, moved: Hand) -> None:
    """How long a run took counts where it was computed ahead, too: else each stop would take longer, unasked."""
    simulation = Simulation()
    made = explorer(simulation)
    # The clock stands still but for the run at 7, which takes a second.
    monkeypatch.setattr("course.explore.view.time", SimpleNamespace(monotonic=lambda: float(simulation.calls.count(7))))
    moved(made, 6, 7)
    assert simulation.calls == [6, 7] and made.view.result == 71
    made.view.controls["rate"].value = 6
    moved(made, 5)
    assert simulation.calls == [6, 7, 6, 5, 4], "a quick run is followed by the next again"


def test_a_plan_that_lost_its_turn_is_not_computed(clock: Clock) -> None:
    """Its timer went off while another thread had the turn, which planned something else, or nothing."""
    done: list[Any] = []

    async def plans() -> None:
        ahead = Ahead(done.append)
        for after in (None, {"rate": 2}):
            ahead.plan({"rate": 1})
            late, handle = ahead._planned, ahead._handle
            ahead.plan(after)
            ahead._work(late)
            assert not done and ahead._handle is not handle
        await asyncio.sleep(2 * QUIET)

    clock.run(plans())
    assert done == [{"rate": 2}]


def test_a_script_computes_what_it_asks_for() -> None:
    simulation = Simulation()
    made = explorer(simulation)
    made.set(rate=6)
    made.set(rate=7)
    assert simulation.calls == [6, 7]
