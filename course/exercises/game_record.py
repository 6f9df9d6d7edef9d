"""Where the games of a lab's boards are kept: the moves, and those of the best finished game."""

from __future__ import annotations

from typing import Any

from course.exercises.progress import Progress, own


class GameRecord:
    """The record of one game in a learner's progress.

    number: the lab, "04". id: of the game. progress: by default the learner's own file, opened when it is first needed.
    """

    def __init__(self, number: str, id: str, progress: Progress | None = None) -> None:
        self.number, self.id, self._progress = number, id, progress

    @property
    def progress(self) -> Progress:
        """The progress file."""
        if self._progress is None:
            self._progress = own()
        return self._progress

    def read(self) -> Any:
        """Return what was kept last, None if there is nothing."""
        return self.progress.lab(self.number)["boards"].get(self.id)

    def keep(self, entry: dict[str, Any]) -> None:
        """Keep this in place of what was there."""
        self.progress.change(self.number, "boards", self.id, lambda _before: entry)
