"""When an explorer computes, and when it takes the controls to rest, on a clock that jumps to the next timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from course.explore.latest import JUST_ENDED, PATIENCE, SETTLE, Latest
from course.explore.rest import AFTER, Rest
from tests.explore.conftest import Clock

TICK = 1e-6


def called(clock: Clock) -> tuple[list[float], Callable[[], None]]:
    """The moments at which the returned function was called."""
    moments: list[float] = []
    return moments, lambda: moments.append(round(clock.now - 100, 3))


def test_rest_comes_once_after_the_last_move(clock):
    moments, work = called(clock)

    async def moves() -> None:
        resting = Rest(work)
        for _ in range(5):
            resting.moved()
            await asyncio.sleep(AFTER - 0.1)
        assert moments == [], "presses that follow each other are one move"
        await asyncio.sleep(10)

    clock.run(moves())
    assert moments == [round(4 * (AFTER - 0.1) + AFTER, 3)]


def test_rest_at_once_takes_the_one_to_come_along(clock):
    moments, work = called(clock)

    async def moves() -> None:
        resting = Rest(work)
        resting.moved()
        resting.now()
        await asyncio.sleep(10)
        resting.moved()
        await asyncio.sleep(10)

    clock.run(moves())
    assert moments == [0.0, round(10 + AFTER, 3)]


def test_without_a_loop_every_move_rests_and_runs_at_once():
    moments: list[int] = []
    for asked in (Rest(lambda: moments.append(1)).moved, Latest(lambda: moments.append(2)).ask):
        asked(), asked()
    assert moments == [1, 1, 2, 2]


def test_the_first_press_after_a_pause_waits_for_nothing(clock):
    moments, work = called(clock)

    async def presses() -> None:
        newest = Latest(work)
        newest.ask()
        await asyncio.sleep(JUST_ENDED + TICK)
        newest.ask()

    clock.run(presses())
    assert moments == [0.0, JUST_ENDED]


def test_what_follows_soon_is_joined_and_waits_until_it_has_settled(clock):
    moments, work = called(clock)

    async def presses() -> None:
        newest = Latest(work)
        newest.ask()
        for _ in range(4):
            await asyncio.sleep(SETTLE / 2)
            newest.ask()
        await asyncio.sleep(10)

    clock.run(presses())
    assert moments == [0.0, round(4 * SETTLE / 2 + SETTLE, 3)]


def test_a_slider_that_keeps_moving_is_drawn_all_the_same(clock):
    moments, work = called(clock)

    async def presses() -> None:
        newest = Latest(work)
        until = clock.now + 1
        while clock.now < until:
            newest.ask()
            await asyncio.sleep(SETTLE / 2)
        await asyncio.sleep(10)

    clock.run(presses())
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert max(gaps[:-1]) <= PATIENCE + SETTLE + TICK and len(moments) <= 1 / PATIENCE + 3


def test_a_run_that_fails_does_not_stop_the_next(clock):
    runs: list[int] = []

    def work() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            raise RuntimeError("no")

    async def presses() -> None:
        newest = Latest(work)
        with pytest.raises(RuntimeError):
            newest.ask()
        newest.ask()
        assert runs == [0], "the one that failed has only just ended"
        await asyncio.sleep(1)

    clock.run(presses())
    assert runs == [0, 1]
