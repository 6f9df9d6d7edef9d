"""A file of JSON, of JSON lines or of a CSV table of runs, as a list of documents with the lines they stand on."""

import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

from course.base.textfiles import json_lines, json_value


class Document(NamedTuple):
    """A parsed value and its line; None for the line if it is the whole file. run: its number in a list of runs."""

    line: int | None
    value: Any
    run: int | None = None

    def place(self, path: Path) -> str:
        """How a sentence names it."""
        if self.run is not None:
            return f"{path.name}, run {self.run}"
        return path.name if self.line is None else f"{path.name}, row {self.line}"


def documents(path: Path, content: str) -> list[Document]:
    """Each line, if the first one is whole JSON and not the last; else the file as one. ValueError for no JSON."""
    begun = content.lstrip()
    if not begun:
        raise ValueError(f"{path.name} is empty")
    if is_table(begun):
        return table(path, content)
    head, _, rest = begun.partition("\n")
    if rest.strip():
        try:
            json_value(path, head)
        except ValueError:
            return [Document(None, json_value(path, content))]
        return [Document(number, value) for number, value in json_lines(path, content, limit=len(content))]
    return [Document(None, json_value(path, content))]


def runs(documents: list[Document]) -> list[Document]:
    """The documents, if a file is one list of objects each of its own: the runs of a sweep."""
    if len(documents) != 1 or not isinstance(documents[0].value, list) or not documents[0].value:
        return documents
    return [Document(None, value, number) for number, value in enumerate(documents[0].value)]


def is_table(content: str) -> bool:
    """Whether a file begins as the CSV of a sweep does: a line of names, with those of a benchmark among them."""
    head = content.partition("\n")[0]
    return not content.startswith(("{", "[")) and "request_throughput" in head.split(",") and "duration" in head


def table(path: Path, content: str) -> list[Document]:
    """Each row as an object of its cells, numbers as numbers; an empty cell is missing. ValueError for ragged rows."""
    documents = []
    reader = csv.reader(io.StringIO(content))
    try:
        names = next(reader)
        for row in reader:
            if row and len(row) != len(names):
                raise ValueError(
                    f"{path.name}, row {reader.line_num}: {len(row)} cells under {len(names)} column names"
                )
            if row:
                cells = zip(names, row, strict=True)
                documents.append(
                    Document(reader.line_num, {name: _cell(cell) for name, cell in cells if name and cell})
                )
    except csv.Error as error:
        raise ValueError(f"{path.name}, row {reader.line_num}: {error}") from None
    if not documents:
        raise ValueError(f"{path.name} has column names but no rows")
    return documents


def _cell(text: str) -> Any:
    """A number if it is one; a list of numbers as pandas writes it; else the text."""
    if text[0] == "[" and text[-1] == "]":
        try:
            return json_value(Path("cell"), text)
        except ValueError:
            return None
    try:
        return int(text) if text.lstrip("-").isdecimal() and len(text) < 20 else float(text)
    except ValueError:
        return text
