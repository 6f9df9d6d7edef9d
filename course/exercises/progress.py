"""Progress in one small JSON file: read, changed and written back under a lock, so that open notebooks share it.

A file that cannot be read, or that a newer version wrote, is renamed and kept. Where nothing can be written, the lab
goes on and remembers until the kernel stops.
"""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from platformdirs import user_data_dir

from course.exercises.filelock import locked

SCHEMA = 1
FOLDER = "COURSE_PROGRESS_DIR"
NAME = "progress.json"
PARTS = ("predictions", "exercises", "quiz")

State = dict[str, Any]
MIGRATIONS: dict[int, Callable[[State], State]] = {}
"""From a schema to the next one: MIGRATIONS[1] turns a state of schema 1 into one of schema 2."""


UNUSABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What a file of the wrong shape raises; broken JSON is a ValueError."""


class Newer(Exception):
    """The file was written by a newer version of the course."""


class Progress:
    """What a learner has done in every lab.

    Args:
        folder: where `progress.json` lives; by default the folder in the environment variable COURSE_PROGRESS_DIR, or
            else the user's data folder.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        chosen = folder or os.environ.get(FOLDER) or user_data_dir("llm-batching-course", appauthor=False)
        self.path = Path(chosen) / NAME
        self.notices: list[str] = []
        self._memory: State | None = None
        try:
            # Resolved, so that a file linked from elsewhere is changed there, and the link stays.
            self.path = self.path.expanduser().resolve()
            self.path.exists()
        except (OSError, RuntimeError, ValueError) as error:
            self._remember(f"{self.path} cannot be used ({getattr(error, 'strerror', None) or error})")
            self._memory = _empty()

    def lab(self, number: str) -> dict[str, dict[str, Any]]:
        """Return a copy of what is stored for a lab: {"predictions": ..., "exercises": ..., "quiz": ...}."""
        stored = self._read()["labs"].get(number, {})
        return {part: copy.deepcopy(stored.get(part, {})) for part in PARTS}

    def change(self, number: str, part: str, name: str, edit: Callable[[Any], Any]) -> None:
        """Replace one entry by `edit(entry)`; `entry` is None the first time. Entries of others stay as they are.

        Args:
            number: the lab, "03".
            part: "predictions", "exercises" or "quiz".
            name: id of the prediction, exercise or question.
            edit: returns the new entry, made of plain JSON values.
        """

        def edited(state: State) -> State:
            entries = state["labs"].setdefault(number, {}).setdefault(part, {})
            entries[name] = edit(copy.deepcopy(entries.get(name)))
            return state

        if self._memory is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with locked(self.path.with_suffix(".lock")):
                    state = self._load()
                    if self._memory is None:
                        self._write(edited(state))
                        return
            except OSError as error:
                self._remember(f"{self.path} cannot be written ({error.strerror or error})")
        self._memory = edited(self._memory or _empty())

    def _read(self) -> State:
        if self._memory is not None:
            return self._memory
        if not self.path.exists():
            return _empty()
        try:
            with locked(self.path.with_suffix(".lock")):
                return self._load()
        except OSError:
            pass  # no lock in a read-only folder; reading may still do
        try:
            return self._load()
        except OSError as error:
            self._remember(f"{self.path} cannot be read ({error.strerror or error})")
            return self._memory or _empty()

    def _load(self) -> State:
        """Return the stored state, migrated; put a file aside that cannot be used."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return _empty()
        except UnicodeDecodeError:
            return self._set_aside("corrupt")
        try:
            return _migrated(_checked(json.loads(text)))
        except Newer:
            return self._set_aside("newer")
        except UNUSABLE:
            return self._set_aside("corrupt")

    def _set_aside(self, why: str) -> State:
        number = 1
        while (kept := self.path.with_name(f"progress.{why}-{number}.json")).exists():
            number += 1
        reason = "was written by a newer version of the course" if why == "newer" else "could not be read"
        try:
            self.path.rename(kept)
        except OSError:
            # It must not be overwritten, so from here on nothing is written at all.
            self._remember(f"{self.path} {reason} and cannot be moved")
            return self._memory or _empty()
        self.notices.append(f"{self.path} {reason}. It is kept as {kept.name}, and a new file begins.")
        return _empty()

    def _remember(self, what: str) -> None:
        if self._memory is None:
            try:
                self._memory = _migrated(_checked(json.loads(self.path.read_text(encoding="utf-8"))))
            except (OSError, Newer, *UNUSABLE):
                self._memory = _empty()
            self.notices.append(f"{what}: your progress is kept only until the kernel stops.")

    def _write(self, state: State) -> None:
        """Replace the file in one move, so that a crash leaves the old or the new one and never half of it."""
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".progress-", suffix=".json")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(state, file, indent=1, sort_keys=True)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _empty() -> State:
    return {"schema": SCHEMA, "labs": {}}


def _checked(state: Any) -> State:
    """Return the state if its shape is right, else raise; unknown keys are left alone and survive."""
    schema = state["schema"]
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError(f"schema {schema!r}")
    if schema > SCHEMA:
        raise Newer(f"schema {schema}")
    for lab in state["labs"].values():
        for part in PARTS:
            if not isinstance(lab.get(part, {}), dict):
                raise ValueError(f"{part} is {type(lab[part]).__name__}")
    return state


def _migrated(state: State) -> State:
    while state["schema"] < SCHEMA:
        schema = state["schema"]
        state = MIGRATIONS[schema](state)
        state["schema"] = schema + 1
    return state
