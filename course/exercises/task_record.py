"""Where the tasks of a lab's explorers are kept, done by oneself or shown, and where their controls were left."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from course.base.settings import quote
from course.exercises.lesson import load
from course.exercises.progress import Progress, own
from course.exercises.standing import task_state
from course.explore.tasks import DONE


class TaskRecord:
    """The record of one lab's tasks, and of where an explorer was left, in a learner's progress.

    number: the lab, "03". progress: by default the learner's own file, opened when it is first needed. explorer: the
    name under which it is kept where the controls of one explorer were left; "" keeps no such thing.
    """

    def __init__(self, number: str, progress: Progress | None = None, explorer: str = "") -> None:
        self.number = number
        self.explorer = explorer
        self._progress = progress

    @property
    def progress(self) -> Progress:
        """The progress file."""
        if self._progress is None:
            self._progress = own()
        return self._progress

    def states(self) -> Mapping[str, str]:
        """Return "done" or "shown" by the id of a task."""
        stored = self.progress.lab(self.number)["tasks"]
        return {id: state for id, entry in stored.items() if (state := task_state(entry))}

    def keep(self, id: str, state: str) -> None:
        """Keep the state of a task; one that was done stays done."""
        at = datetime.now(UTC).isoformat(timespec="seconds")

        def edit(entry: Any) -> dict[str, str]:
            return entry if task_state(entry) == DONE else {"state": state, "at": at}

        self.progress.change(self.number, "tasks", id, edit)

    def left(self) -> Mapping[str, Any]:
        """Return what `leave` kept last, {} if there is nothing."""
        stored = self.progress.lab(self.number)["explorers"].get(self.explorer) if self.explorer else None
        return stored if isinstance(stored, dict) else {}

    def leave(self, entry: Mapping[str, Any]) -> None:
        """Keep these settings, or tables of measurements, over what was there under the same names."""
        if self.explorer:
            self.progress.change(
                self.number,
                "explorers",
                self.explorer,
                lambda before: {**(before if isinstance(before, dict) else {}), **entry},
            )


def tasks_of(number: str, explorer: str) -> dict[str, Any]:
    """Return the arguments `tasks` and `record` of an explorer: its tasks, as the lab's questions name them.

    Raises ValueError for an explorer without tasks.
    """
    groups = load(number).by_explorer
    if explorer not in groups:
        raise ValueError(
            f"lab {number} has no tasks for an explorer {quote(explorer)}; `tasks` of its asks.yaml names"
            f" {', '.join(groups) or 'none'}"
        )
    return {"tasks": groups[explorer], "record": TaskRecord(number, explorer=explorer)}
