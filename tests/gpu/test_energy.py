"""Mean watts from a counter that moves only now and then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from course.gpu import energy, step_profile


class Card:
    """A clock, and a counter that shows every `every` seconds what `watts` have used. Seconds pass in `run` alone."""

    def __init__(self, watts: float, every: float, start: float = 0.013) -> None:
        self.watts, self.every, self.now = watts, every, start

    def run(self, seconds: float = 0.02) -> None:
        self.now += seconds

    def joules(self) -> float:
        return self.watts * self.every * int(self.now / self.every)

    def mean(self, **more: Any) -> float | None:
        return energy.mean_watts(self.joules, self.run, clock=lambda: self.now, **more)


@pytest.mark.parametrize("every", [0.02, 0.05, 0.1])
def test_the_mean_is_of_whole_moves_of_the_counter(every: float) -> None:
    """A look each 20 ms finds a move up to 20 ms late, of a window of 0.5 s: within 8%."""
    assert Card(640, every).mean() == pytest.approx(640, rel=0.08)
    assert Card(640, every).mean(window=5.0) == pytest.approx(640, rel=0.01)


def test_a_counter_that_stands_gives_no_watts() -> None:
    assert Card(640, 10.0).mean() is None
    assert Card(640, 0.9).mean() is None  # two moves are one difference, whose ends may both be late


def test_long_runs_are_repeated_until_the_counter_has_moved() -> None:
    """A step of a quarter of a second is looked at twice in a window; a slow counter moves twice."""
    card = Card(640, 0.05)
    assert energy.mean_watts(card.joules, lambda: card.run(0.25), clock=lambda: card.now) == pytest.approx(640, rel=0.1)
    slow = Card(640, 0.3)
    assert slow.mean() == pytest.approx(640, rel=0.05)
    assert slow.now < 1.3  # no longer than for three moves


class Nvml:
    """The three calls, for one card."""

    def __init__(self, known: bytes = b"00000000:1b:00.0", status: int = 0) -> None:
        self.known, self.status, self.millijoules = known, status, 5_000

    def nvmlInit_v2(self) -> int:
        return self.status

    def nvmlDeviceGetHandleByPciBusId_v2(self, address: bytes, card: Any) -> int:
        return 0 if address == self.known else 6

    def nvmlDeviceGetTotalEnergyConsumption(self, card: Any, used: Any) -> int:
        used._obj.value = self.millijoules
        return 0


def test_the_counter_is_of_the_card_at_that_address() -> None:
    nvml, here = Nvml(), SimpleNamespace(bus="00000000:1b:00.0")
    joules = energy.counter(here, nvml)  # type: ignore[arg-type]
    assert joules is not None and joules() == 5.0
    nvml.millijoules = 12_500
    assert joules() == 12.5
    for device, library in (
        (SimpleNamespace(bus="00000000:1c:00.0"), nvml),
        (SimpleNamespace(bus=""), nvml),
        (SimpleNamespace(), nvml),
        (here, Nvml(status=9)),
    ):
        assert energy.counter(device, library) is None  # type: ignore[arg-type]


def test_a_step_is_replayed_further_for_its_watts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Queue:
        def __init__(self) -> None:
            self.card, self.runs = Card(500, 0.02), list[int]()

        def seconds(self, replay: Any, repeats: int, warm: int) -> np.ndarray:
            self.runs.append(repeats)
            self.card.run(0.005 * repeats)
            return np.full(repeats, 0.005)

    queue = Queue()
    step = SimpleNamespace(run=lambda: None, captured=lambda: None, queue=queue, form="fused")
    meter = step_profile.Meter(queue.card.joules)
    mean = energy.mean_watts
    monkeypatch.setattr(energy, "mean_watts", lambda joules, run: mean(joules, run, clock=lambda: queue.card.now))
    found, form = step_profile.replayed(step, 0.1, meter)  # type: ignore[arg-type]
    assert len(found) == 20 and form == "fused"  # those of the time are what they were without a meter
    assert queue.runs[:2] == [1, 20] and set(queue.runs[2:]) == {4}
    assert meter.watts == pytest.approx(500, rel=0.08)
