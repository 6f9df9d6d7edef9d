"""A file of JSON, or of JSON lines, as a list of documents with the lines they stand on."""

from pathlib import Path
from typing import Any, NamedTuple

from course.base.textfiles import json_lines, json_value


class Document(NamedTuple):
    """A parsed value and its line; None for the line where it is the whole file."""

    line: int | None
    value: Any

    def place(self, path: Path) -> str:
        """How a sentence names it."""
        return path.name if self.line is None else f"{path.name}, row {self.line}"


def documents(path: Path, content: str) -> list[Document]:
    """Each line, where the first one is whole JSON and not the last; else the file as one. ValueError for no JSON."""
    begun = content.lstrip()
    if not begun:
        raise ValueError(f"{path.name} is empty")
    head, _, rest = begun.partition("\n")
    if rest.strip():
        try:
            json_value(path, head)
        except ValueError:
            return [Document(None, json_value(path, content))]
        return [Document(number, value) for number, value in json_lines(path, content, limit=len(content))]
    return [Document(None, json_value(path, content))]
