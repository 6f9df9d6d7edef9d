"""Explorers that measure on this machine, beside a recording that is the same everywhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any

from course.explore.explorer import Explorer
from course.explore.plot import picture
from course.explore.turn import in_turn
from course.explore.view import View

Measuring = Generator[Any, None, None]
"""Results of one setting, of which more is measured with each; the first has nothing that was measured for it."""
PAUSE = 0.002
"""Seconds between two pieces, in which the kernel reads whether something moved."""
REDRAW = 0.5
"""Seconds between two pictures of what is measured so far: each takes about as long as a piece."""


class LiveExplorer(Explorer):
    """An explorer whose text is that of another, which measures nothing."""

    pure = False

    def __init__(self, recorded: Explorer, simulate: Any, **shared: Any) -> None:
        super().__init__(simulate, **shared)
        self._recorded = recorded

    def text(self) -> str:
        """The text of the recorded part, which is the same on every machine."""
        return self._recorded.text()


class MeasuringExplorer(LiveExplorer):
    """One that measures anew at each move, piece by piece behind the picture, until the next move.

    measuring: from the settings to `Measuring`; a piece should take no longer than a move may wait. Computed from a
    script it is measured to the end.
    """

    def __init__(self, recorded: Explorer, measuring: Callable[..., Measuring], **shared: Any) -> None:
        def to_the_end(**settings: Any) -> Any:
            *_, result = measuring(**settings)
            return result

        super().__init__(recorded, to_the_end, **shared)
        self.measuring = measuring

    def new_view(self) -> MeasuringView:
        """The widgets of one display."""
        return MeasuringView(self)


class MeasuringView(View):
    """One display of it. Without an event loop (a script, a test) a move is measured to the end at once."""

    def __init__(self, explorer: MeasuringExplorer) -> None:
        self._pieces: Measuring | None = None
        self._found: Any = None
        self._redrawn = 0.0
        super().__init__(explorer)
        self._later()

    def _begun(self, settings: Mapping[str, Any], first: bool = False) -> Any:
        self._stop()
        self._pieces = self.explorer.measuring(**settings)
        self._redrawn = time.monotonic()
        self._found = next(self._pieces)
        return self._found

    def _run(self) -> None:
        super()._run()
        self._later()

    def _fail(self, error: Exception) -> None:
        self._stop()
        super()._fail(error)

    def _stop(self) -> None:
        if self._pieces is not None:
            self._pieces.close()
            self._pieces = None

    def _later(self) -> None:
        """Measure the next piece soon; at once, and all that are left, where there is no event loop."""
        try:
            asyncio.get_running_loop().call_later(PAUSE, self._piece, self._pieces)
        except RuntimeError:
            self._complete()

    def _complete(self) -> None:
        while self._pieces is not None:
            self._measure()

    @in_turn
    def _piece(self, pieces: Measuring | None) -> None:
        if pieces is not None and pieces is self._pieces:  # else something moved meanwhile
            self._measure()
            self._rest.moved()
            if self._pieces is not None:
                self._later()

    def _measure(self) -> None:
        assert self._pieces is not None
        try:
            found = next(self._pieces, None)
            if found is None:
                self._pieces = None
            else:
                self._found = found
            due = self._pieces is None or time.monotonic() - self._redrawn > REDRAW
            if due and self._found is not self.result:
                self._draw(self.settings, self._found, *picture(self.explorer.drawn(self._found)))
                self._redrawn = time.monotonic()
        except Exception as error:
            self._fail(error)
