"""Progress in one small JSON file: read, changed and written back under a lock, so that open notebooks share it.

A file that cannot be read, or that a newer version wrote, is renamed and kept. Where nothing can be written, or where
a folder, a pipe or a device has the file's name, the lab goes on and remembers until the kernel stops.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any

from platformdirs import user_data_dir

from course.base import files
from course.base.filelock import file_lock

SCHEMA = 1
FOLDER = "COURSE_PROGRESS_DIR"
NAME = "progress.json"
PARTS = ("predictions", "tasks", "exercises", "quiz", "boards", "explorers")
LARGEST = 8_000_000
"""Bytes. A learner who does everything a hundred times comes to a tenth of it."""
DEEPEST = 50
"""Levels of lists and dictionaries, of which the course uses seven; far more would exhaust Python's stack."""
HIGHEST = 2**63
"""No whole number in the file is larger: Python refuses to write those of more than 4,300 digits."""

State = dict[str, Any]
MIGRATIONS: dict[int, Callable[[State], State]] = {}
"""From a schema to the next one: MIGRATIONS[1] turns a state of schema 1 into one of schema 2."""


UNUSABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What a file of the wrong shape raises; broken JSON is a ValueError."""


NEWER, CORRUPT = "was written by a newer version of the course", "could not be read"


class Newer(Exception):
    """The file was written by a newer version of the course."""


class Progress:
    """What a learner has done in every lab.

    folder: where `progress.json` lives; by default the folder in the environment variable COURSE_PROGRESS_DIR, or else
    the user's data folder.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        chosen = folder or os.environ.get(FOLDER) or user_data_dir("llm-batching-course", appauthor=False)
        self.path = Path(chosen) / NAME
        self.notices: list[str] = []
        self._memory: State | None = None
        self._turn = RLock()  # forms are answered in a thread beside that of the cells
        try:
            # Resolved, so that a file linked from elsewhere is changed there, and the link stays.
            self.path = self.path.expanduser().resolve()
            files.ordinary(self.path)
        except files.NotAFile as error:
            self._remember(str(error))
        except (OSError, RuntimeError, ValueError) as error:
            self._remember(f"{self.path} cannot be used ({getattr(error, 'strerror', None) or error})")

    def lab(self, number: str) -> dict[str, dict[str, Any]]:
        """Return a copy of what is stored for a lab, a dictionary under each name of PARTS."""
        with self._turn:
            stored = self._read()["labs"].get(number, {})
            return {part: copy.deepcopy(stored.get(part, {})) for part in PARTS}

    def stored(self) -> dict[str, Any]:
        """Return a copy of what is stored for every lab, by its number."""
        with self._turn:
            return copy.deepcopy(self._read()["labs"])

    def kept(self) -> bool:
        """Whether what is stored outlives this process."""
        return self._memory is None

    def unusable(self) -> str:
        """Why the first use of the file will put it aside, such as "could not be read"; "" if it will not."""
        try:
            self._parsed()
        except Newer:
            return NEWER
        except (*UNUSABLE, OSError) as error:
            return "" if isinstance(error, FileNotFoundError) else CORRUPT
        return ""

    def change(self, number: str, part: str, name: str, edit: Callable[[Any], Any]) -> None:
        """Replace one entry by `edit(entry)`; `entry` is None the first time. Entries of others stay as they are.

        number: the lab, "03".
        part: one of PARTS.
        name: id of the prediction, task, exercise, question or game, or the name of an explorer.
        edit: returns the new entry, made of plain JSON values.
        """

        def edited(state: State) -> State:
            entries = state["labs"].setdefault(number, {}).setdefault(part, {})
            entries[name] = edit(copy.deepcopy(entries.get(name)))
            return state

        with self._turn:
            if self._memory is None and self._stored(edited):
                return
            self._memory = edited(self._memory or _empty())

    def _stored(self, edited: Callable[[State], State]) -> bool:
        """Whether the file holds the edited state now; else it is to be remembered."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with file_lock(self.path.with_suffix(".lock")):
                state = self._load()
                if self._memory is None:
                    self._write(edited(state))
                    return True
        except OSError as error:
            self._remember(f"{self.path} cannot be written ({error.strerror or error})")
        return False

    def forget(self, number: str, stamp: str) -> Path | None:
        """Forget what is stored for a lab, once a copy of it has been written beside the file.

        number: the lab, "03". stamp: goes into the name of the copy, which is a progress file of its own with that lab
        alone.

        Returns the copy, or None if nothing was stored.

        Raises OSError: the progress cannot be read or written, or no copy can be made. Then nothing is forgotten.
        """
        self._insist()
        if not files.ordinary(self.path):
            return None
        with file_lock(self.path.with_suffix(".lock")):
            state = self._load()
            self._insist()
            if number not in state["labs"]:
                return None
            alone = {**state, "labs": {number: state["labs"].pop(number)}}
            for attempt in count(1):
                copy_ = self.path.with_name(f"progress.lab{number}-{stamp}{'' if attempt == 1 else f'-{attempt}'}.json")
                try:
                    files.write_new(copy_, _as_bytes(alone))
                except FileExistsError:
                    continue
                break
            self._write(state)
            return copy_

    def _insist(self) -> None:
        if self._memory is not None:
            raise OSError(" ".join(self.notices) or f"{self.path} cannot be used")

    def _read(self) -> State:
        if self._memory is not None:
            return self._memory
        try:
            if not files.ordinary(self.path):
                return _empty()
            try:
                with file_lock(self.path.with_suffix(".lock")):
                    return self._load()
            except OSError:
                return self._load()  # no lock in a read-only folder; reading may still do
        except OSError as error:
            self._remember(f"{self.path} cannot be read ({error.strerror or error})")
            return self._memory or _empty()

    def _load(self) -> State:
        """Return the stored state, migrated; put a file aside that cannot be used."""
        try:
            return self._parsed()
        except FileNotFoundError:
            return _empty()
        except Newer:
            return self._set_aside("newer")
        except UNUSABLE:
            return self._set_aside("corrupt")

    def _parsed(self) -> State:
        return _migrate(_check(json.loads(files.read(self.path, LARGEST).decode("utf-8"))))

    def _set_aside(self, why: str) -> State:
        reason = NEWER if why == "newer" else CORRUPT
        try:
            kept = files.put_aside(
                self.path, (self.path.with_name(f"progress.{why}-{number}.json") for number in count(1))
            )
        except OSError:
            # It must not be overwritten, so from here on nothing is written at all.
            self._remember(f"{self.path} {reason} and cannot be moved")
            return self._memory or _empty()
        self.notices.append(f"{self.path} {reason}. It is kept as {kept.name}, and a new file is started.")
        return _empty()

    def _remember(self, what: str) -> None:
        if self._memory is None:
            try:
                self._memory = self._parsed()
            except (OSError, Newer, *UNUSABLE):
                self._memory = _empty()
            self.notices.append(f"{what}: your progress is kept only until the kernel stops.")

    def _write(self, state: State) -> None:
        files.replace(self.path, _as_bytes(state), mode=0o600)


@cache
def _kept_in(folder: str | None) -> Progress:
    return Progress(folder)


def own() -> Progress:
    """The learner's own progress. One object for the whole kernel, so that what cannot be written is still found."""
    return _kept_in(os.environ.get(FOLDER))


def _as_bytes(state: State) -> bytes:
    return json.dumps(state, indent=1, sort_keys=True).encode()


def _empty() -> State:
    return {"schema": SCHEMA, "labs": {}}


def _check(state: Any) -> State:
    """Return the state if its shape is right, else raise; unknown keys are left alone and survive."""
    _check_size(state)
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


def _check_size(state: Any) -> None:
    """Raise ValueError for what could be read but not copied or written again; level by level, without recursion."""
    level = [state]
    for _ in range(DEEPEST):
        parts = [part for part in level if isinstance(part, dict | list)]
        level = [item for part in parts for item in (part.values() if isinstance(part, dict) else part)]
        if any(isinstance(item, int) and abs(item) > HIGHEST for item in level):
            raise ValueError("a number that the course cannot have written")
        if not level:
            return
    raise ValueError(f"more than {DEEPEST} levels")


def _migrate(state: State) -> State:
    while state["schema"] < SCHEMA:
        schema = state["schema"]
        state = MIGRATIONS[schema](state)
        state["schema"] = schema + 1
    return state
