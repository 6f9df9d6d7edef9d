"""The Azure LLM inference traces of 2023 and 2024.

TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
"""

from course.traces import rows, table

TIMESTAMP, PROMPT, OUTPUT = COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


def matches(header: list[str]) -> bool:
    """Whether the names, in small letters, are those of this format."""
    return {column.lower() for column in COLUMNS} <= set(header)


class Reader(table.Reader):
    """Rows and what they say."""

    needed = COLUMNS

    def parse(self, row: list[str]) -> rows.Row:
        """The request of a row; `BrokenRow` if there is none."""
        when, prompt, output = self.cells(row).values()
        time, zoned = rows.moment(TIMESTAMP, when)
        return rows.Row(time, rows.prompt(PROMPT, prompt), rows.count(OUTPUT, output), zoned)
