"""The latest wish wins: run once for many moves of a slider."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

# A browser sends the next position of a slider as soon as the kernel has read the last one. While a run computes, one
# stale position is therefore already in the queue and the newest one still in the browser. Waiting this long after a
# run that has only just ended lets both arrive, and costs the first press after a pause nothing.
SETTLE = 0.012
JUST_ENDED = 0.1


class Latest:
    """Call `work` soon after the latest `ask`, once, however often it was asked meanwhile.

    Inside a running event loop (a Jupyter kernel) the call is put behind the messages that wait already. Without one
    (a plain script, a test) the call happens at once.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._handle: asyncio.TimerHandle | None = None
        self._ended = -1.0

    def ask(self) -> None:
        """Say that something has changed."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.now()
            return
        if self._handle is None:
            busy = time.monotonic() - self._ended < JUST_ENDED
            self._handle = loop.call_later(SETTLE if busy else 0, self.now)

    def now(self) -> None:
        """Call `work` at once; a call that was still to come is dropped, since this one covers it."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        try:
            self._work()
        finally:
            self._ended = time.monotonic()
