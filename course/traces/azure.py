"""The Azure LLM inference traces of 2023 and 2024.

TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
"""

from pathlib import Path

from course.traces import rows, table

TIMESTAMP, PROMPT, OUTPUT = COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


def matches(header: list[str]) -> bool:
    """Whether the names, in small letters, are those of this format."""
    return {column.lower() for column in COLUMNS} <= set(header)


class Reader:
    """Rows and what they say."""

    note = ""

    def __init__(self, path: Path, content: str, hint: str = ""):
        self.rows = table.lines(path, content)
        self._header = table.Header(path, self.rows, COLUMNS, hint=hint)

    def parse(self, row: list[str]) -> rows.Row:
        """The request of a row; `Broken` where there is none."""
        when, prompt, output = self._header.cells(row, COLUMNS)
        time, zoned = rows.moment(TIMESTAMP, when)
        return rows.Row(time, rows.prompt(PROMPT, prompt), rows.count(OUTPUT, output), zoned)
