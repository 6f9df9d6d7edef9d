"""Traces as splitwise-sim takes them; times in seconds.

request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size
0,2,0,1,1,4096,32
"""

from pathlib import Path

from course.traces import rows, table

TIME, PROMPT, OUTPUT = NEEDED = ("arrival_timestamp", "prompt_size", "token_size")
BATCH = "batch_size"


def matches(header: list[str]) -> bool:
    """Whether the names, in small letters, are those of this format."""
    return set(NEEDED) <= set(header)


class Reader:
    """Rows and what they say."""

    note = ""

    def __init__(self, path: Path, content: str):
        self.rows = table.lines(path, content)
        self._header = table.Header(path, self.rows, NEEDED, (BATCH,))
        self._columns = [*NEEDED, *([BATCH] if BATCH in self._header else [])]

    def parse(self, row: list[str]) -> rows.Row:
        """The request of a row; `Broken` where there is none, or several."""
        when, prompt, output, *batch = self._header.cells(row, self._columns)
        if batch and rows.count(BATCH, batch[0]) != 1:
            raise rows.Broken(f"{BATCH} is {batch[0]}: a row is one request here", f"a {BATCH} above 1")
        return rows.Row(rows.elapsed(TIME, when), rows.prompt(PROMPT, prompt), rows.count(OUTPUT, output))
