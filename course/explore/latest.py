"""The latest wish wins: run once for many moves of a slider."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from course.explore.turn import in_turn

# A browser sends the next position of a slider as soon as the kernel has read the last one. While a run computes, stale
# positions are therefore queued here and the newest one still waits in the browser. After a run that has only just
# ended, the next one waits until no message has come for SETTLE seconds, or for PATIENCE in all, so that a slider which
# keeps moving still moves the picture. The first press after a pause waits for nothing, and is answered before the
# kernel says that it is idle again, which JupyterLab takes several milliseconds to show.
SETTLE = 0.012
PATIENCE = 0.1
JUST_ENDED = 0.1


class Latest:
    """Call `work` soon after the latest `ask`, once, however often it was asked meanwhile.

    The first call after a pause happens at once. Inside a running event loop (a Jupyter kernel) one that follows soon
    is put behind the messages that wait already; without a loop (a plain script, a test) every call happens at once.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._handle: asyncio.TimerHandle | None = None
        self._ended = -1.0
        self._first = 0.0

    @in_turn
    def ask(self) -> None:
        """Say that something has changed."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.now()
            return
        now = time.monotonic()
        if self._handle is None and now - self._ended >= JUST_ENDED:
            self.now()
        elif self._handle is None:
            self._first = now
            self._handle = loop.call_later(SETTLE, self.now)
        elif self._handle.when() > loop.time():  # it is still settling
            self._handle.cancel()
            wait = max(0.0, min(SETTLE, self._first + PATIENCE - now))
            self._handle = loop.call_later(wait, self.now)

    @in_turn
    def now(self) -> None:
        """Call `work` at once; a call that was still to come is dropped, since this one covers it."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        try:
            self._work()
        finally:
            self._ended = time.monotonic()
