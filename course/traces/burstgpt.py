"""BurstGPT, in both sets of columns: requests to ChatGPT and GPT-4 at a university.

    Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
    5,ChatGPT,472,18,490,Conversation log

    Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type

Times are whole seconds. 0 response tokens is a failed request. `class_` is the model.
"""

from course.traces import rows, table

TIME, PROMPT, OUTPUT = COLUMNS = ("Timestamp", "Request tokens", "Response tokens")
TOTAL, MODEL = OPTIONAL_COLUMNS = ("Total tokens", "Model")


def matches(header: list[str]) -> bool:
    """Whether the names, in small letters, are those of this format."""
    return {column.lower() for column in COLUMNS} <= set(header)


class Reader(table.Reader):
    """Rows and what they say."""

    needed, optional = COLUMNS, OPTIONAL_COLUMNS

    def parse(self, row: list[str]) -> rows.Row:
        """The request of a row; `FailedRequest` for one without an answer, `BrokenRow` if there is none."""
        cells = self.cells(row)
        time, prompt = rows.picoseconds(TIME, cells[TIME]), rows.prompt(PROMPT, cells[PROMPT])
        if cells[OUTPUT] in ("0", "0.0"):
            raise rows.FailedRequest(f"{OUTPUT} is 0: the request failed", f"0 {OUTPUT}")
        output = rows.count(OUTPUT, cells[OUTPUT])
        table.check_total(TOTAL, cells.get(TOTAL), prompt, output)
        return rows.Row(time, prompt, output, class_=cells.get(MODEL))
