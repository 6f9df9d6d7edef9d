"""Traces as the simulator Vidur takes them: with arrivals in seconds, or lengths alone.

arrived_at,num_prefill_tokens,num_decode_tokens
0.0,374,44

num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio
3772,54,3826,69.85185185185185
"""

from course.traces import rows, table

PROMPT, OUTPUT = COLUMNS = ("num_prefill_tokens", "num_decode_tokens")
TIME, TOTAL = OPTIONAL_COLUMNS = ("arrived_at", "num_total_tokens")


def matches(header: list[str]) -> bool:
    """Whether the names, in small letters, are those of this format."""
    return set(COLUMNS) <= set(header)


class Reader(table.Reader):
    """Rows and what they say."""

    needed, optional = COLUMNS, OPTIONAL_COLUMNS

    def parse(self, row: list[str]) -> rows.Row:
        """The request of a row; `BrokenRow` if there is none."""
        cells = self.cells(row)
        time = rows.picoseconds(TIME, cells[TIME]) if TIME in cells else None
        prompt, output = rows.prompt(PROMPT, cells[PROMPT]), rows.count(OUTPUT, cells[OUTPUT])
        table.check_total(TOTAL, cells.get(TOTAL), prompt, output)
        return rows.Row(time, prompt, output)
