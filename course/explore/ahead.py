"""The next stop of the control that moved, computed while nothing moves: a press that goes on gets it at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from course.explore.controls import Control
from course.explore.latest import JUST_ENDED
from course.explore.turn import in_turn

QUIET = 1.5 * JUST_ENDED
"""Seconds without a move after which it is computed: a slider that keeps moving never waits for it."""
QUICK = 0.05
"""Seconds that a run may take for the next one to be computed ahead; a longer one would hold up other cells."""

Settings = Mapping[str, Any]
T = TypeVar("T")


def next_stop(controls: Sequence[Control], before: Settings, now: Settings) -> dict[str, Any] | None:
    """Return the settings one more step like the last leads to; None if it was none of one control, or the last."""
    moved = [control for control in controls if before[control.name] != now[control.name]]
    if len(moved) != 1:
        return None
    (control,) = moved
    stops = list(control.stops)
    if before[control.name] not in stops or now[control.name] not in stops:
        return None
    was, is_ = stops.index(before[control.name]), stops.index(now[control.name])
    following = 2 * is_ - was
    if abs(is_ - was) != 1 or not 0 <= following < len(stops):
        return None
    return {**now, control.name: stops[following]}


class Ahead(Generic[T]):
    """Computes one setting ahead, soon after it was planned, and keeps it until it is taken or another is planned."""

    def __init__(self, compute: Callable[[Settings], T]) -> None:
        self._compute = compute
        self._handle: asyncio.TimerHandle | None = None
        self._planned: dict[str, Any] | None = None
        self._ready: tuple[dict[str, Any], T] | None = None

    def plan(self, settings: Settings | None) -> None:
        """Compute these settings once nothing has been planned for QUIET seconds; None: nothing.

        Without an event loop (a script, a test) nothing is computed ahead.
        """
        self.drop()
        if settings is None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._planned = dict(settings)
        self._handle = loop.call_later(QUIET, self._work, self._planned)

    @in_turn
    def _work(self, settings: dict[str, Any]) -> None:
        if settings is not self._planned:  # it waited for its turn while another thread planned anew
            return
        self._handle = self._planned = None
        try:
            self._ready = settings, self._compute(settings)
        except Exception:  # a move there computes it again, and shows what is wrong
            self._ready = None

    def take(self, settings: Settings) -> T | None:
        """Return what was computed ahead for these settings, or None."""
        ready, self._ready = self._ready, None
        return ready[1] if ready is not None and ready[0] == settings else None

    def drop(self) -> None:
        """Forget what was planned and computed."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._planned = self._ready = None
