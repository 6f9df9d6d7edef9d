"""A CSV file of one's own: any header with a time, a prompt and an output column, under the names people give them.

    arrival,prompt_tokens,output_tokens
    0.5,128,64

Times are seconds, or milliseconds under a name that ends in _ms, or dates as in the Azure traces. A column `class` or
`class_` becomes the label of the request.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from course.base.settings import quote
from course.traces import rows, table

TIME = (
    "arrival", "arrived_at", "arrival_time", "arrival_timestamp", "timestamp", "time", "start_time", "request_time",
    "arrival_s", "arrival_time_s", "timestamp_s", "time_s",
    "arrival_ms", "arrival_time_ms", "timestamp_ms", "time_ms",
)  # fmt: skip
PROMPT = (
    "prompt_tokens", "input_tokens", "prompt_length", "input_length", "prompt_len", "input_len", "num_prompt_tokens",
    "num_input_tokens", "context_tokens", "isl",
)  # fmt: skip
OUTPUT = (
    "output_tokens", "completion_tokens", "generated_tokens", "response_tokens", "output_length", "output_len",
    "num_output_tokens", "decode_tokens", "osl",
)  # fmt: skip
CLASS = ("class_", "class")
MILLISECOND = rows.PICOSECONDS // 1_000
COLUMNS = (TIME, PROMPT, OUTPUT)


def _plain(name: str) -> str:
    """A name as it is in the lists above: "Prompt Tokens" is prompt_tokens."""
    return re.sub(r"[ \-.]+", "_", name.strip().lower())


def matches(header: list[str]) -> bool:
    """Whether there is a column for each of time, prompt and output."""
    names = {_plain(name) for name in header}
    return all(names & set(synonyms) for synonyms in COLUMNS)


class Reader:
    """Rows and what they say."""

    note = ""

    def __init__(self, path: Path, content: str):
        head = next(table.lines(path, content), (0, []))[1]
        self.rows = table.lines(path, content)
        self._columns = [_one(path, head, synonyms) for synonyms in COLUMNS]
        label = [name.strip() for name in head if _plain(name) in CLASS][:1]
        self._header = table.Header(path, self.rows, self._columns, label)
        self.unread = self._header.unread
        self._columns += label
        self._unit = MILLISECOND if _plain(self._columns[0]).endswith("_ms") else rows.PICOSECONDS
        self._dates: bool | None = None  # not known before the first row

    def parse(self, row: list[str]) -> rows.Row:
        """The request of a row; `BrokenRow` if there is none."""
        when, prompt, output, *label = self._header.cells(row, self._columns)
        time_column, prompt_column, output_column, *_ = self._columns
        dates = bool(re.match(r"\d{4}-\d\d-", when))
        if self._dates not in (None, dates):
            raise rows.BrokenRow(
                f"{time_column} must be dates on all rows or on none", f"another kind of {time_column}"
            )
        if dates:
            time, zoned = rows.moment(time_column, when)
        else:
            time, zoned = rows.picoseconds(time_column, when, self._unit), False
        tokens = rows.prompt(prompt_column, prompt), rows.count(output_column, output)
        self._dates = dates
        return rows.Row(time, *tokens, zoned, label[0] if label else None)


def _one(path: Path, head: Sequence[str], synonyms: Sequence[str]) -> str:
    """The one column of the header with such a name; ValueError for none or several."""
    matching = [name.strip() for name in head if _plain(name) in synonyms]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise ValueError(
            f"{path.name}, row 1: {' and '.join(matching[:2])} could both be the {synonyms[0]}. Leave one of them out"
        )
    raise ValueError(
        f"{path.name}, row 1: no column is named {synonyms[0]} (or {', '.join(synonyms[1:5])}, ...); found "
        f"{quote(', '.join(name.strip() for name in head))}"
    )
