"""Traces as splitwise-sim takes them; times in seconds.

request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size
0,2,0,1,1,4096,32
"""

from course.traces import rows, table

TIME, PROMPT, OUTPUT = COLUMNS = ("arrival_timestamp", "prompt_size", "token_size")
BATCH = "batch_size"


def matches(header: list[str]) -> bool:
    """Whether the names, in small letters, are those of this format."""
    return set(COLUMNS) <= set(header)


class Reader(table.Reader):
    """Rows and what they say."""

    needed, optional = COLUMNS, (BATCH,)

    def parse(self, row: list[str]) -> rows.Row:
        """The request of a row; `BrokenRow` if there is none, or several."""
        when, prompt, output, *batch = self.cells(row).values()
        if batch and rows.count(BATCH, batch[0]) != 1:
            raise rows.BrokenRow(f"{BATCH} is {batch[0]}: a row is one request here", f"a {BATCH} above 1")
        return rows.Row(rows.picoseconds(TIME, when), rows.prompt(PROMPT, prompt), rows.count(OUTPUT, output))
