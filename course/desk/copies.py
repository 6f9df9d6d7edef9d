"""The learner's copies of the labs, in `my-labs/` beside the handed-out ones in `labs/`.

`labs/` stays as handed out, so that pulling and testing never meet a learner's edits. A copy is made once and never
overwritten; a small file remembers which version it was made from, so that the learner can be told when the handed-out
lab has changed since.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from course.base import files

RECORD = ".handed-out.json"
LARGEST_RECORD = 1_000_000  # bytes
LARGEST_LAB = 100_000_000
DEEPER = "_deeper.ipynb"
"""Ends the name of a notebook that goes deeper than its lab."""


class WorkspaceError(OSError):
    """The labs or the folder for the copies cannot be used; the message is a sentence for the learner."""


@dataclass(frozen=True)
class CopyReport:
    """What `copy_labs` found, as file names."""

    new: tuple[str, ...]
    kept: tuple[str, ...]
    changed: tuple[str, ...]
    """Those of `kept` whose handed-out version has changed since the copy was made."""
    remarks: tuple[str, ...] = ()
    """A sentence for each thing that is not as it should be and did not stop the rest."""

    def report(self, mine: Path) -> list[str]:
        """The lines to show to the learner."""
        lines = [f"New in {mine.name}/: {', '.join(self.new)}"] if self.new else []
        lines += [
            f"{name} has changed in labs/ since your copy was made. Yours is untouched; to get the new one, put yours "
            f"aside with: course reset {name}"
            for name in self.changed
        ]
        return [*lines, *self.remarks]


def folders(labs: str | None = None, mine: str | None = None, *, missing_ok: bool = False) -> tuple[Path, Path]:
    """Where the handed-out labs and the learner's copies are.

    labs: by default `labs/` here, or else in the project from which the course was installed. mine: by default what
    MY_LABS names, as for `make lab`, or else `my-labs/`, both seen from the folder that holds `labs/`. An empty name is
    none.

    Raises WorkspaceError where there is no such folder of labs, unless missing_ok, or where a name is none.
    """
    if not labs and not os.path.isdir("labs"):
        installed = Path(__file__).resolve().parents[2] / "labs"
        labs = str(installed) if os.path.isdir(installed) else None
    handed_out = _path_of(labs or "labs")
    copies = _path_of(mine) if mine else _path_of(os.environ.get("MY_LABS") or "my-labs", handed_out.parent)
    if not missing_ok and not os.path.isdir(handed_out):
        raise WorkspaceError(f"No folder {handed_out}: start this in the course's folder, or give --labs.")
    return handed_out, copies


def _path_of(name: str, seen_from: Path | None = None) -> Path:
    try:
        path = Path(name).expanduser()
        return path.absolute() if seen_from is None else seen_from / path
    except (OSError, RuntimeError) as error:
        raise WorkspaceError(f"{name} names no folder: {reason(error)}") from error


def copy_labs(labs: Path, mine: Path) -> CopyReport:
    """Copy the notebooks of `labs` that `mine` lacks, and say which handed-out ones have changed since their copy.

    Never overwrites a file of the learner's. Raises WorkspaceError when `mine` cannot be written.
    """
    new, kept, changed = [], [], []
    handed_out, remarks = read_labs(labs)
    with _sentences(mine):
        mine.mkdir(parents=True, exist_ok=True)
        record = Record(mine)
        for name, content in handed_out.items():
            copy = mine / name
            try:
                files.write_new(copy, content)
            except FileExistsError:
                kept.append(name)
                if record.differs(name, content):
                    changed.append(name)
                elif name not in record.digests and holds(copy, content):
                    record.note(name, content)
                if not copy.is_file():
                    remarks.append(
                        f"{copy} is no file, but a folder or a link that leads nowhere: rename it to get the lab."
                    )
            else:
                new.append(name)
                record.note(name, content)
        remarks += record.save()
    return CopyReport(tuple(new), tuple(kept), tuple(changed), tuple(remarks))


def reset(labs: Path, mine: Path, name: str, now: datetime) -> tuple[bool, Path | None, list[str]]:
    """Put the learner's copy of the lab `name` aside, under a name with the time `now`, and make a pristine one.

    Returns whether a new copy was made, which is not so where the learner's is pristine; where the old copy is, None
    where there was none; and a sentence for each thing that did not stop the rest.

    Raises WorkspaceError: something cannot be read or written. Then the learner's copy is where it was.
    """
    try:
        content = files.read(labs / name, LARGEST_LAB)
    except (OSError, files.TooLarge) as error:
        raise WorkspaceError(f"{labs / name} cannot be copied: {reason(error)}") from error
    copy, aside = mine / name, None
    with _sentences(mine):
        mine.mkdir(parents=True, exist_ok=True)
        record = Record(mine)
        fresh = not holds(copy, content)
        if fresh:
            if os.path.lexists(copy):
                stem = f"{copy.stem}_{now:%Y-%m-%d_%H-%M-%S}"
                more = ("", *(f"-{number}" for number in range(2, 100)))
                aside = files.put_aside(copy, (copy.with_name(f"{stem}{part}{copy.suffix}") for part in more))
            try:
                files.write_new(copy, content)
            except BaseException:
                if aside is not None and not os.path.lexists(copy):
                    os.replace(aside, copy)
                raise
        record.note(name, content)
    return fresh, aside, record.save()


def find(labs: Path, text: str) -> str:
    """The file name of the handed-out lab that `text` means: its number, or its name with or without .ipynb.

    A number means the lab and not the notebook that goes deeper, which is "07_deeper" or its name.

    Raises ValueError, with the labs that there are.
    """
    names = sorted(path.name for path in labs.glob("*.ipynb"))
    asked = Path(text.strip()).name
    if asked.isascii() and asked.isdigit():
        matching = [name for name in names if name.startswith(f"{asked.zfill(2)}_") and not name.endswith(DEEPER)]
    elif asked[:2].isdigit() and f"{asked[2:].removesuffix('.ipynb')}.ipynb" == DEEPER:
        matching = [name for name in names if name.startswith(f"{asked[:2]}_") and name.endswith(DEEPER)]
    else:
        matching = [name for name in names if asked in (name, name.removesuffix(".ipynb"))]
    if len(matching) != 1:
        from course.base.settings import quote  # brings NumPy, which `course doctor` must do without

        why = "is more than one lab" if matching else "is no lab"
        raise ValueError(f"{quote(text)} {why}: choose from {', '.join(matching or names) or f'none, {labs} is empty'}")
    return matching[0]


def state(copy: Path, content: bytes, record: Record) -> str:
    """What a copy is, beside the handed-out `content`.

    "none"; "pristine"; "yours"; "outdated": yours, made from another version; "unreadable": a folder, a broken link.
    """
    if not os.path.lexists(copy):
        return "none"
    if holds(copy, content):
        return "pristine"
    if record.differs(copy.name, content):
        return "outdated"
    return "yours" if copy.is_file() else "unreadable"


def read_labs(labs: Path) -> tuple[dict[str, bytes], list[str]]:
    """The handed-out notebooks by name, in order, and a sentence for each that cannot be read."""
    found: dict[str, bytes] = {}
    remarks: list[str] = []
    for lab in sorted(labs.glob("*.ipynb") if os.path.isdir(labs) else ()):
        try:
            found[lab.name] = files.read(lab, LARGEST_LAB)
        except (OSError, files.TooLarge) as error:
            remarks.append(f"{lab} cannot be copied: {reason(error)}.")
    return found, remarks or ([] if found else [f"There are no notebooks in {labs}."])


class Record:
    """Which handed-out version each copy in `mine` was made from: digests by name, in a small hidden file."""

    def __init__(self, mine: Path) -> None:
        self.path = mine / RECORD
        self.digests: dict[str, str] = {}
        self._problem: OSError | None = None
        found = None
        try:
            found = json.loads(files.read(self.path, LARGEST_RECORD))
        except FileNotFoundError:
            pass
        except OSError as error:
            self._problem = error
        except (ValueError, RecursionError):
            pass  # broken: begun anew, since copies that are pristine are recognised again
        if isinstance(found, dict):
            self.digests = {name: digest for name, digest in found.items() if isinstance(digest, str)}
        self._before = dict(self.digests)

    def note(self, name: str, content: bytes) -> None:
        """The copy `name` was made from `content`."""
        self.digests[name] = _digest(content)

    def differs(self, name: str, content: bytes) -> bool:
        """Whether the copy `name` is known to have been made from something else than `content`."""
        return self.digests.get(name, _digest(content)) != _digest(content)

    def save(self) -> list[str]:
        """Write what has changed. Returns a sentence where that cannot be: the labs can be taken without."""
        if self.digests == self._before:
            return []
        try:
            if self._problem is not None:
                raise self._problem
            files.replace(self.path, (json.dumps(self.digests, indent=1, sort_keys=True) + "\n").encode())
        except OSError as error:
            return [f"{self.path} cannot be used ({reason(error)}): nobody will tell you when a lab has changed."]
        return []


def holds(copy: Path, content: bytes) -> bool:
    """Whether a copy can be read and holds this."""
    try:
        return files.read(copy, len(content)) == content
    except (OSError, files.TooLarge):
        return False


def reason(error: Exception) -> str:
    """Why something failed, without the path that the sentence names anyway."""
    return getattr(error, "strerror", None) or str(error)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextmanager
def _sentences(mine: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"Cannot keep your copies of the labs in {mine}: {reason(error)}. "
            "Name a folder that you can write, for example: make lab MY_LABS=~/my-labs"
        ) from error
