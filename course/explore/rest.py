"""Notice that the controls rest: nothing has moved for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from course.explore.turn import in_turn

AFTER = 0.7
"""Seconds. Presses of a key that follow each other faster are one move."""


class Rest:
    """Call `work` once nothing was `moved` for AFTER seconds; without an event loop (a script, a test) at once."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._handle: asyncio.TimerHandle | None = None

    @in_turn
    def moved(self) -> None:
        """Say that something moves."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.now()
            return
        self._stop()
        self._handle = loop.call_later(AFTER, self.now)

    @in_turn
    def now(self) -> None:
        """Call `work` at once."""
        self._stop()
        self._work()

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
