"""Rows of a CSV file under a header, each with the number that an editor shows."""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from course.base.settings import quote
from course.traces.rows import BrokenRow, count

Lines = Iterator[tuple[int, list[str]]]
MAX_LINE = 2**20  # characters; a line of a hundred million commas would be as many cells
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines(path: Path, content: str) -> Lines:
    """Each row that is not blank, with the number of the line on which it begins."""
    reader = csv.reader(_lines(path, content), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"{path.name}, row {number}: this is not CSV ({error}). Check its quotes") from None
        if any(cell.strip() for cell in cells):
            yield number, cells


def _lines(path: Path, content: str) -> Iterator[str]:
    """The lines, with their ends, each of a length that fits."""
    for number, match in enumerate(_LINE.finditer(content), start=1):
        if match.end() - match.start() > MAX_LINE:
            raise ValueError(
                f"{path.name}, row {number}: a line of more than {MAX_LINE:,} characters. Is this a trace?"
            )
        yield match[0]


class Header:
    """Where the columns are. Names are compared without case and outer blanks.

    needed: names that must be there. ValueError if one is not, or is there twice.
    """

    def __init__(self, path: Path, rows: Lines, needed: Sequence[str], optional: Sequence[str] = (), hint: str = ""):
        number, cells = next(rows, (0, []))
        if not cells:
            raise ValueError(f"{path.name} is empty: a trace begins with the header {','.join(needed)}")
        present = names(cells)
        missing = [column for column in needed if column.lower() not in present]
        if missing:
            separated = next(
                (f" (are its cells separated by {mark!r}? Commas are needed)" for mark in ";\t|" if mark in cells[0]),
                "",
            )
            raise ValueError(
                f"{path.name}, row {number}: no column {' or '.join(missing)}. Needed are {', '.join(needed)}; found "
                f"{quote(', '.join(cell.strip() for cell in cells))}{separated or hint}"
            )
        for column in (*needed, *optional):
            if present.count(column.lower()) > 1:
                raise ValueError(f"{path.name}, row {number}: two columns are named {column}. Rename the wrong one")
        self.width = len(cells)
        used = {column.lower() for column in (*needed, *optional)}
        self.unread = tuple(cell.strip() for cell in cells if cell.strip() and cell.strip().lower() not in used)
        self._places = {
            column: present.index(column.lower()) for column in (*needed, *optional) if column.lower() in present
        }

    def __contains__(self, column: str) -> bool:
        return column in self._places

    def cells(self, row: list[str], columns: Sequence[str]) -> list[str]:
        """The cells under those columns, without outer blanks. `BrokenRow` if the row has another width."""
        if len(row) != self.width:
            raise BrokenRow(f"it has {len(row)} cells where the header has {self.width}", "the wrong number of cells")
        return [row[self._places[column]].strip() for column in columns]


class Reader:
    """Rows of one format: a subclass says which columns it has, and parses a row.

    needed, optional: names of columns; a row's `cells` holds those of the second kind that the file has. `hint` ends
    the sentence on a column that is missing.
    """

    needed: Sequence[str] = ()
    optional: Sequence[str] = ()
    unread: Sequence[str] = ()
    note = ""

    def __init__(self, path: Path, content: str, hint: str = ""):
        self.rows = lines(path, content)
        self._header = Header(path, self.rows, self.needed, self.optional, hint)
        self.unread = self._header.unread
        self._columns = [*self.needed, *(column for column in self.optional if column in self._header)]

    def cells(self, row: list[str]) -> dict[str, str]:
        """The cells of a row by the name of their column. `BrokenRow` if the row has another width."""
        return dict(zip(self._columns, self._header.cells(row, self._columns), strict=True))


def check_total(column: str, cell: str | None, prompt: int, output: int) -> None:
    """`BrokenRow` if a file says how many tokens a request has in all, and its parts make another number."""
    if cell and count(column, cell) != prompt + output:
        raise BrokenRow(f"{column} is {cell} where {prompt} + {output} make {prompt + output}", f"a wrong {column}")


def names(cells: Sequence[str]) -> list[str]:
    """The column names of a header, in small letters."""
    return [cell.strip().lower() for cell in cells]
