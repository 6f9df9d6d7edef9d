"""Which handed-out version each copy was made from, so that an untouched copy is told from a learner's own."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from course.base import files
from course.desk.places import reason

RECORD = ".handed-out.json"
LARGEST_RECORD = 1_000_000  # bytes
LARGEST_LAB = 100_000_000


class Record:
    """The handed-out version that each copy in `mine` was made from: digests by name, in a small hidden file."""

    def __init__(self, mine: Path) -> None:
        self.path = mine / RECORD
        self.digests: dict[str, str] = {}
        self._problem: OSError | None = None
        content = None
        try:
            content = json.loads(files.read(self.path, LARGEST_RECORD))
        except FileNotFoundError:
            pass
        except OSError as error:
            self._problem = error
        except (ValueError, RecursionError):
            pass  # broken: begun anew, since copies that are pristine are recognised again
        if isinstance(content, dict):
            self.digests = {name: digest for name, digest in content.items() if isinstance(digest, str)}
        self._before = dict(self.digests)

    def note(self, name: str, content: bytes) -> None:
        """The copy `name` was made from `content`."""
        self.digests[name] = _digest(content)

    def differs(self, name: str, content: bytes) -> bool:
        """Whether the copy `name` is known to have been made from something else than `content`."""
        return self.digests.get(name, _digest(content)) != _digest(content)

    def untouched(self, name: str, copy: Path) -> bool:
        """Whether a copy is a file that still holds, to the byte, what it was made from."""
        if name not in self.digests or copy.is_symlink():
            return False
        try:
            return _digest(files.read(copy, LARGEST_LAB)) == self.digests[name]
        except (OSError, files.TooLarge):
            return False

    def rename(self, folder: Path, old: str, new: str) -> bool:
        """Rename a copy whose handed-out lab has another name now; False if there is none, or the new name is taken.

        old, new: from `folder`, as the record has them.
        """
        if not old or not os.path.lexists(folder / old) or os.path.lexists(folder / new):
            return False
        try:
            files.put_aside(folder / old, [folder / new])
        except OSError:
            return False  # it stays where it was, and nothing is lost
        if old in self.digests:
            self.digests[new] = self.digests.pop(old)
        return True

    def save(self) -> list[str]:
        """Write what has changed. Returns a sentence if that cannot be: the labs can be taken without."""
        if self.digests == self._before:
            return []
        try:
            if self._problem is not None:
                raise self._problem
            files.replace(self.path, (json.dumps(self.digests, indent=1, sort_keys=True) + "\n").encode())
        except OSError as error:
            return [f"{self.path} cannot be used ({reason(error)}): you will not be told when a lab has changed."]
        return []


def bring(copy: Path, name: str, content: bytes, record: Record) -> str:
    """Write `content` as the copy `name` unless the learner's own file is there, and say what was done.

    Returns "new", "same", "refreshed" (it was untouched and of another version) or "yours" (left alone). Raises OSError
    if it cannot be written.
    """
    try:
        files.write_new(copy, content)
    except FileExistsError:
        if holds(copy, content):
            outcome = "same"
        elif record.untouched(name, copy):
            files.replace(copy, content)
            outcome = "refreshed"
        else:
            return "yours"
    else:
        outcome = "new"
    record.note(name, content)
    return outcome


def holds(copy: Path, content: bytes) -> bool:
    """Whether a copy can be read and holds this."""
    try:
        return files.read(copy, len(content)) == content
    except (OSError, files.TooLarge):
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
