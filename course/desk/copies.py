"""The learner's copies of the labs, in `my-labs/` beside the handed-out ones in `labs/`.

`labs/` stays as handed out, so that pulling and testing never meet a learner's edits. What a learner has changed is
never overwritten. A small file remembers which version each copy was made from: a copy that is still exactly that
version is replaced when the handed-out lab changes, and of a changed one the learner is told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from course.base import files
from course.desk.places import WorkspaceError, command, folders, reason
from course.desk.record import LARGEST_LAB, LARGEST_RECORD, RECORD, Record, bring, holds
from course.exercises.names import former, is_deeper

__all__ = [
    "LARGEST_RECORD",
    "RECORD",
    "CopyReport",
    "Record",
    "WorkspaceError",
    "copy_labs",
    "find",
    "folders",
    "reset",
    "state",
]


@dataclass(frozen=True)
class CopyReport:
    """What `copy_labs` found, as file names."""

    new: tuple[str, ...]
    kept: tuple[str, ...]
    changed: tuple[str, ...]
    """Those of `kept` that are the learner's own, and whose handed-out version has changed since the copy was made."""
    refreshed: tuple[str, ...] = ()
    """Copies that the learner had not changed, now replaced by the version handed out."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Copies that had the name of an earlier version of the course, and what they are called now."""
    remarks: tuple[str, ...] = ()
    """A sentence for each thing that is not as it should be and did not stop the rest."""
    labs: Path = field(default_factory=lambda: Path("labs"))

    def report(self, mine: Path) -> list[str]:
        """The lines to show to the learner."""
        lines = [f"New in {mine.name}/: {', '.join(self.new)}"] if self.new else []
        if self.refreshed:
            lines.append(
                f"Newer versions in {mine.name}/, of labs that you had not changed: {', '.join(self.refreshed)}"
            )
        lines += [f"{old} is called {name} now; it is your copy as it was." for old, name in self.renamed]
        lines += [
            f"{name} has changed in {self.labs.name}/ since your copy was made. Yours is untouched; to get the new "
            f"one, put yours aside with: {command(self.labs, mine, 'reset', name)}"
            for name in self.changed
        ]
        return [*lines, *self.remarks]


def copy_labs(labs: Path, mine: Path) -> CopyReport:
    """Copy the notebooks of `labs` that `mine` lacks, and replace those copies that are still as they were handed out.

    Never overwrites what a learner has changed. Raises WorkspaceError when `mine` cannot be written.
    """
    by_outcome: dict[str, list[str]] = {"new": [], "same": [], "refreshed": [], "yours": []}
    changed, renamed = [], []
    found_labs, remarks = read_labs(labs)
    with sentences(mine):
        mine.mkdir(parents=True, exist_ok=True)
        record = Record(mine)
        for name, content in found_labs.items():
            copy = mine / name
            if record.rename(mine, former(name), name):
                renamed.append((former(name), name))
            outcome = bring(copy, name, content, record)
            by_outcome[outcome].append(name)
            if outcome == "yours" and record.differs(name, content):
                changed.append(name)
            if outcome == "yours" and not copy.is_file():
                remarks.append(f"{copy} is not a file but a folder or a broken link: rename it to get the lab.")
        remarks += record.save()
    unchanged = tuple(name for name in found_labs if name in by_outcome["same"] + by_outcome["yours"])
    return CopyReport(
        tuple(by_outcome["new"]),
        unchanged,
        tuple(changed),
        tuple(by_outcome["refreshed"]),
        tuple(renamed),
        tuple(remarks),
        labs,
    )


def reset(
    labs: Path, mine: Path, name: str, now: datetime, then: Callable[[], None] = lambda: None
) -> tuple[bool, Path | None, list[str]]:
    """Put the learner's copy of the lab `name` aside, under a name with the time `now`, and make a pristine one.

    then: what else belongs to it, called last. If it fails the old copy is put back, which needs no space on a disk.

    Returns whether a new copy was made, which is not so if the learner's is pristine; where the old copy is, None
    if there was none; and a sentence for each thing that did not stop the rest.

    Raises WorkspaceError: something cannot be read or written; or what `then` raises. The old copy is where it was.
    """
    try:
        content = files.read(labs / name, LARGEST_LAB)
    except (OSError, files.TooLarge) as error:
        raise WorkspaceError(f"{labs / name} cannot be copied: {reason(error)}") from error
    copy, aside = mine / name, None
    with sentences(mine):
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
    try:
        then()
    except BaseException:
        if fresh:
            _undo(copy, aside)
        raise
    record.note(name, content)
    return fresh, aside, record.save()


def _undo(copy: Path, aside: Path | None) -> None:
    if aside is None:
        copy.unlink(missing_ok=True)
    elif aside.is_dir() and not aside.is_symlink():  # a folder does not take the place of a file
        copy.unlink(missing_ok=True)
        os.replace(aside, copy)
    else:
        os.replace(aside, copy)


def find(labs: Path, text: str) -> str:
    """The file name of the handed-out lab that `text` means: its number, or its name with or without .ipynb.

    A number means the lab itself, not its deeper notebook. Raises ValueError, with the labs that there are.
    """
    names = sorted(path.name for path in labs.glob("*.ipynb"))
    wish = Path(text.strip()).name
    if wish.isascii() and wish.isdigit():
        matching = [name for name in names if name.startswith(wish.zfill(2))]
        matching = [name for name in matching if not is_deeper(name)] or matching
    else:
        matching = [name for name in names if wish.removesuffix(".ipynb") + ".ipynb" in (name, former(name))]
    if len(matching) != 1:
        from course.base.settings import quote

        why = "is more than one lab" if matching else "is no lab"
        raise ValueError(f"{quote(text)} {why}: choose from {', '.join(matching or names) or f'none, {labs} is empty'}")
    return matching[0]


def state(copy: Path, content: bytes, record: Record) -> str:
    """What a copy is, beside the handed-out `content`.

    "none"; "pristine"; "old": not changed, of another version; "yours"; "outdated": yours, made from another version;
    "unreadable": a folder, a broken link.
    """
    if not os.path.lexists(copy):
        return "none"
    if holds(copy, content):
        return "pristine"
    if record.untouched(copy.name, copy):
        return "old"
    if record.differs(copy.name, content):
        return "outdated"
    return "yours" if copy.is_file() else "unreadable"


def read_labs(labs: Path) -> tuple[dict[str, bytes], list[str]]:
    """What a learner gets of each notebook, by name and in order, and a sentence for each that cannot be read."""
    contents: dict[str, bytes] = {}
    remarks: list[str] = []
    for lab in sorted(labs.glob("*.ipynb") if os.path.isdir(labs) else ()):
        try:
            contents[lab.name] = files.read(lab, LARGEST_LAB)
        except (OSError, files.TooLarge) as error:
            remarks.append(f"{lab} cannot be copied: {reason(error)}.")
    return contents, remarks or ([] if contents else [f"There are no notebooks in {labs}."])


@contextmanager
def sentences(mine: Path) -> Iterator[None]:
    """What the system refuses inside becomes a WorkspaceError about `mine`."""
    try:
        yield
    except WorkspaceError:
        raise
    except OSError as error:
        raise WorkspaceError(
            f"Your copies of the labs cannot be kept in {mine}: {reason(error)}. "
            "Name a folder that you can write to, for example: make lab MY_LABS=~/my-labs"
        ) from error
