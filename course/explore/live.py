"""An explorer that measures on this machine, beside a recording that is the same everywhere."""

from __future__ import annotations

from typing import Any

from course.explore.explorer import Explorer


class LiveExplorer(Explorer):
    """An explorer whose text is that of another, which measures nothing."""

    pure = False

    def __init__(self, recorded: Explorer, simulate: Any, **shared: Any) -> None:
        super().__init__(simulate, **shared)
        self._recorded = recorded

    def text(self) -> str:
        """The text of the recorded part, which is the same on every machine."""
        return self._recorded.text()
