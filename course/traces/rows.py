"""One row of a trace: its request, or why it has none. Times are integers of picoseconds, so that no digit is lost."""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from course.base.settings import MAX_TOKENS, quote

PICOSECONDS = 10**12
LATEST = 10**11  # seconds: the year 5138; a number above it is no time in seconds
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,12}))?\s*(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII | re.IGNORECASE
)
# Both bounded: a long cell must not cost quadratic time, a large exponent not a gigabyte of digits.
_COUNT = re.compile(r"(\d{1,20})(?:\.0{1,6})?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d{1,20})(\.\d{0,40})?(e[+-]?\d{1,2})?", re.ASCII | re.IGNORECASE)


class BrokenRow(Exception):
    """A row that cannot be used: why, as half a sentence, and the kind of trouble to count it under."""

    def __init__(self, why: str, kind: str):
        super().__init__(why)
        self.kind = kind


class FailedRequest(BrokenRow):
    """A row in order, of a request that failed: it has no answer to serve."""


class Row(NamedTuple):
    """Picoseconds (None in a file without times), prompt and output tokens; whether the time names a zone; labels."""

    time: int | None
    prompt: int
    output: int
    zoned: bool = False
    class_: str | None = None
    prefix: tuple[int | str, ...] | None = None


class Reader(Protocol):
    """What each format offers: the rows of a file, each with its number, and the request that one of them is.

    note: a sentence on how the file was read, "" if nothing is to be said.
    """

    rows: Iterator[tuple[int, Any]]
    note: str

    def parse(self, row: Any) -> Row:
        """The request of a row. Raises BrokenRow if there is none."""
        ...


def moment(column: str, cell: str) -> tuple[int, bool]:
    """A date with a time of day in picoseconds, and whether it has a time zone."""
    try:
        match = _MOMENT.fullmatch(cell)
        if match is None:
            raise ValueError
        day, *clock, fraction, zone = match.groups()
        hour, minute, second = map(int, clock)
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError
        seconds = _days(day) * 86_400 + hour * 3_600 + minute * 60 + second - _offset(zone)
    except ValueError:
        raise BrokenRow(
            f"{column} is {quote(cell)}, which is not a time like '2023-11-16 18:15:46.6805900'", f"a broken {column}"
        ) from None
    return seconds * PICOSECONDS + int((fraction or "").ljust(12, "0")), zone is not None


@lru_cache(maxsize=1_000)
def _days(day: str) -> int:
    return date.fromisoformat(day).toordinal()


@lru_cache(maxsize=100)
def _offset(zone: str | None) -> int:
    """Seconds by which clocks in that zone are ahead of UTC."""
    if zone is None or zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError
    return (hours * 3_600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def picoseconds(column: str, cell: str, unit: int = PICOSECONDS) -> int:
    """A number of seconds, or of other units of so many picoseconds, in picoseconds."""
    if not _NUMBER.fullmatch(cell):
        why = "is empty" if not cell else f"is {quote(cell)}, which is not a number"
        raise BrokenRow(f"{column} {why}", f"a broken {column}")
    value = Decimal(cell) * unit
    if abs(value) > LATEST * PICOSECONDS:
        raise BrokenRow(f"{column} is {quote(cell)}, which is too far away for a time", f"a broken {column}")
    return int(value.to_integral_value())


def count(column: str, cell: str, zero: str = "a failed request?") -> int:
    """A number of tokens. zero: what a count of 0 may mean, for the sentence."""
    match = _COUNT.fullmatch(cell)
    if not match:
        why = "is empty" if not cell else f"is {quote(cell)}, which is not a whole number of tokens"
        raise BrokenRow(f"{column} {why}", f"a broken {column}")
    if int(match[1]) > MAX_TOKENS:
        raise BrokenRow(f"{column} is {quote(cell)}: the most is {MAX_TOKENS:,} tokens", f"a broken {column}")
    if int(match[1]) == 0:
        raise BrokenRow(f"{column} is 0 ({zero})", f"0 {column}")
    return int(match[1])


def prompt(column: str, cell: str) -> int:
    """The tokens of a prompt."""
    return count(column, cell, "a prompt has at least one token")


def of_json(name: str, row: Mapping) -> str:
    """row[name] as the cell it would be, for the functions above; "" if it is not there or null."""
    value = row.get(name)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BrokenRow(f"{name} is {quote(value)}, which is not a number", f"a broken {name}")
    return quote(value) if isinstance(value, int) else repr(value)
