"""Traces as the simulator Vidur takes them: with arrivals in seconds, or lengths alone.

arrived_at,num_prefill_tokens,num_decode_tokens
0.0,374,44

num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio
3772,54,3826,69.85185185185185
"""

from pathlib import Path

from course.traces import rows, table

PROMPT, OUTPUT = NEEDED = ("num_prefill_tokens", "num_decode_tokens")
TIME, TOTAL = OPTIONAL = ("arrived_at", "num_total_tokens")


def matches(header: list[str]) -> bool:
    """Whether the names, in small letters, are those of this format."""
    return set(NEEDED) <= set(header)


class Reader:
    """Rows and what they say."""

    note = ""

    def __init__(self, path: Path, content: str):
        self.rows = table.lines(path, content)
        self._header = table.Header(path, self.rows, NEEDED, OPTIONAL)
        self._columns = [*NEEDED, *(column for column in OPTIONAL if column in self._header)]

    def parse(self, row: list[str]) -> rows.Row:
        """The request of a row; `Broken` where there is none."""
        cells = dict(zip(self._columns, self._header.cells(row, self._columns), strict=True))
        time = rows.elapsed(TIME, cells[TIME]) if TIME in cells else None
        prompt, output = rows.prompt(PROMPT, cells[PROMPT]), rows.count(OUTPUT, cells[OUTPUT])
        if cells.get(TOTAL) and rows.count(TOTAL, cells[TOTAL]) != prompt + output:
            raise rows.Broken(
                f"{TOTAL} is {cells[TOTAL]} where {prompt} + {output} make {prompt + output}", f"a wrong {TOTAL}"
            )
        return rows.Row(time, prompt, output)
