"""The file of a sweep: one JSON line a run, written when the run is done, in the order in which runs are done."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from course.base import files
from course.base.textfiles import MAX_JSON_BYTES, json_lines, path_of, text
from course.sweep.row import Row, of_document


def read(path: str | os.PathLike) -> list[Row]:
    """The rows of the file, without a last line that was cut off, as where the machine went down while it was written.

    Raises ValueError, with the line, for a file that is no sweep's, and OSError if it cannot be read.
    """
    place = path_of(path, "a sweep")
    content = text(place, "sweep", "JSON lines", MAX_JSON_BYTES)
    whole = content[: content.rfind("\n") + 1]
    if content and not whole:
        _ours(content, place)
    return [of_document(f"{place.name}, row {row}", value) for row, value in json_lines(place, whole)]


def _ours(begun: str, place: Path) -> None:
    """ValueError unless a file that is a single line without an end may be the beginning of a row."""
    if not begun.startswith('{"sweep": '[: len(begun)]):
        raise ValueError(f"{place.name} is no file of a sweep: choose another name, or move it away first")


@contextmanager
def appended(path: str | os.PathLike | None) -> Iterator[tuple[list[Row], Any]]:
    """The rows that are there, and a function that adds one. Without a path there are none, and none is kept."""
    if path is None:
        yield [], lambda row: None
        return
    place = path_of(path, "a sweep")
    rows = []
    if files.ordinary(place):
        try:
            rows = read(place)
        except ValueError as error:
            raise ValueError(
                f"{error}. If it is no file of a sweep, choose another name: rows are added to it"
            ) from None
    elif not place.parent.is_dir():
        raise ValueError(f"there is no folder {place.parent} to write {place.name} into")
    with place.open("a+b") as file:
        _cut(file)
        yield rows, lambda row: _add(file, row)


def _cut(file: BinaryIO) -> None:
    """Take away a last line without an end."""
    size = file.seek(0, os.SEEK_END)
    tail = min(size, 2**20)
    file.seek(size - tail)
    end = file.read(tail).rfind(b"\n")
    if end < tail - 1:
        file.truncate(size - tail + end + 1)


def _add(file: BinaryIO, row: Row) -> None:
    file.write(row.line().encode())
    file.flush()  # so that whatever ends this process leaves the row; only the machine's own end can cut it
