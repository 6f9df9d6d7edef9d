"""Explorers that measure at each move: the picture comes first, and the next move ends the measuring."""

from __future__ import annotations

import asyncio
from typing import Any

import plotly.graph_objects as go
import pytest

from course.explore import Explorer, Slider
from course.explore.live import PAUSE, MeasuringExplorer

RATE = Slider("rate", "Rate", 0, 50, 1, 20)
PIECES = 5


@pytest.fixture
def log() -> list[Any]:
    return []


def made(log: list[Any], fails: bool = False) -> MeasuringExplorer:
    """It measures 1 to 5 hundredths above its rate, and writes down what it measured and what was closed."""

    def measuring(rate: int) -> Any:
        yield float(rate)
        try:
            for piece in range(1, PIECES + 1):
                if fails and piece == 3:
                    raise ValueError("the device is gone: look for it")
                log.append((rate, piece))
                yield rate + piece / 100
        finally:
            log.append((rate, "end"))

    shared: dict[str, Any] = {
        "controls": (RATE,),
        "figure": lambda found: go.Figure(go.Scatter(y=[found]), layout={"yaxis": {"range": [0, 60]}}),
        "summary": lambda found: [("found", f"{found:.2f}")],
    }
    return MeasuringExplorer(Explorer(lambda rate: float(rate), **shared), measuring, **shared)


def displayed(explorer: MeasuringExplorer) -> Any:
    explorer._repr_mimebundle_()
    return explorer.view


def test_without_a_loop_a_move_is_measured_to_the_end(log):
    explorer = made(log)
    assert explorer.compute(rate=7) == 7.05 and "20.00" in explorer.text() and (20, 1) not in log
    view = displayed(explorer)
    assert view.result == 20.05
    assert explorer.set(rate=30) == 30.05 and "30.05" in view.table.value and log[-1] == (30, "end")


def test_the_picture_comes_first_and_the_rest_behind_it(clock, log):
    async def go() -> None:
        view = displayed(made(log))
        assert view.result == 20.0 and log == [] and "20.00" in view.table.value
        await asyncio.sleep(PAUSE * 2 * PIECES + 1)
        assert view.result == 20.05 and "20.05" in view.table.value
        view.controls["rate"].value = 30
        assert view.result == 30.0 and "30.00" in view.table.value
        await asyncio.sleep(1)
        assert view.result == 30.05 and view.plot.traces[0]["y"] == [30.05]
        assert "Rate: 20 → 30. Largest change: found, 20.05 → 30.05." in view.changed.value

    clock.run(go())


def test_the_next_move_ends_it(clock, log):
    async def go() -> None:
        view = displayed(made(log))
        await asyncio.sleep(PAUSE * 2.5)
        assert 0 < len(log) < PIECES
        view.controls["rate"].value = 30
        assert log[-1] == (20, "end") and view.result == 30.0
        await asyncio.sleep(1)
        assert log[-1] == (30, "end") and (20, PIECES) not in log and view.result == 30.05
        view.controls["rate"].value = 31
        view.reset.click()
        await asyncio.sleep(1)
        assert view.result == 20.05 and (31, 1) not in log

    clock.run(go())


def test_a_device_that_fails_on_the_way_says_so_and_the_next_move_measures_again(clock, log):
    async def go() -> None:
        view = displayed(made(log, fails=True))
        await asyncio.sleep(1)
        assert "The device is gone" in view.notice.value and log[-1] == (20, "end")
        view.controls["rate"].value = 30
        assert view.error is None and view.result == 30.0

    clock.run(go())
