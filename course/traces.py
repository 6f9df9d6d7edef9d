"""Requests from trace files that people really have: CSV in the schema of the Azure LLM inference traces.

    TIMESTAMP,ContextTokens,GeneratedTokens
    2023-11-16 18:15:46.6805900,374,44

Nothing is repaired or dropped in silence: a file is read as it stands, or refused with the row and what to do about it.
Row numbers are those an editor shows; the header is row 1.
"""

import csv
import io
import re
import stat
import warnings
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from operator import itemgetter
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from course.settings import MAX_REQUESTS, MAX_TOKENS, shown
from course.workload import Workload

TIMESTAMP, PROMPT, OUTPUT = COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
MAX_BYTES = 2**30  # four times what 5 million rows take
PICOSECONDS = 10**12
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,12}))?\s*(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII | re.IGNORECASE
)
_COUNT = re.compile(r"(\d{1,20})(?:\.0{1,6})?", re.ASCII)  # bounded: a long cell must not cost quadratic time
_OTHER_FORMATS = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip or Excel",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"PAR1": "Parquet",
}


class _Broken(Exception):
    """A row that cannot be used: why, as half a sentence, and the kind of trouble to count it under."""

    def __init__(self, why: str, kind: str):
        super().__init__(why)
        self.kind = kind


def example() -> Path:
    """The path of a small trace that comes with the course: 2,000 synthetic rows, made by `course.synthetic`."""
    return Path(str(files("course") / "data" / "azure_style_conv.csv"))


def read(path: str | PathLike, *, on_error: str = "raise", sort: bool = False, name: str | None = None) -> Workload:
    """The requests of an Azure-style CSV file; arrivals in seconds after the first row.

    The header must name TIMESTAMP, ContextTokens and GeneratedTokens, in any order and case; other columns are ignored.
    Times are `YYYY-MM-DD HH:MM:SS` with up to 12 fractional digits and, on all rows or on none, a zone (Z or +hh:mm).
    They are subtracted as integers, so that no digit of theirs is lost before the difference becomes a float64. LF or
    CRLF, a missing last newline, a byte-order mark, quoted cells and blank lines are all fine.

    on_error: "raise" refuses the file at the first broken row: the wrong number of cells, a time or a count that is
        none, a count of 0. "skip" leaves such rows out, and says how many and why in a warning and in the result's
        `notes`.
    sort: put the rows in order of time; without it, a row before its predecessor refuses the file.
    name: the workload's name, the file's by default.

    ValueError, with the row, for anything that is no such trace; OSError for a file that cannot be opened.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", not {shown(on_error)}')
    try:
        path = Path(fspath(path))
    except TypeError:
        raise ValueError(f"a trace is read from a path, not from {shown(path)}") from None
    rows = _rows(path, _text(path))
    width, places = _header(path, rows)
    kept: list[tuple[int, int, int, int]] = []  # picoseconds, prompt tokens, output tokens, row in the file
    dropped: dict[str, list[int]] = {}
    zoned = None
    for number, cells in rows:
        try:
            moment, has_zone, prompt, output = _parsed(cells, width, places)
            if zoned not in (None, has_zone):
                raise _Broken(f"{TIMESTAMP} must have a time zone on all rows or on none", "another time zone")
        except _Broken as broken:
            if on_error == "raise":
                raise ValueError(
                    f'{path.name}, row {number}: {broken}. Correct the row, or leave such rows out with on_error="skip"'
                ) from None
            dropped.setdefault(broken.kind, []).append(number)
            continue
        zoned = has_zone
        kept.append((moment, prompt, output, number))
        if len(kept) > MAX_REQUESTS:
            raise ValueError(f"{path.name} has more than {MAX_REQUESTS:,} requests: cut it into smaller files")
    notes = (_report(path, dropped, len(kept)),) if dropped else ()
    if not kept:
        raise ValueError(notes[0] if notes else f"{path.name} has a header but no rows: there is nothing to replay")
    if sort:
        kept.sort(key=itemgetter(0))
    for (before, _, _, row_before), (moment, _, _, row) in pairwise(kept):
        if moment < before:
            raise ValueError(
                f"{path.name}, row {row}: its time is {(before - moment) / PICOSECONDS:.7g} s before that of row "
                f"{row_before}. Check that the file is whole, then read it with sort=True"
            )
    for note in notes:
        warnings.warn(note, stacklevel=2)
    first = kept[0][0]
    return Workload(
        # A quotient of two Python integers is the float64 nearest to it.
        arrival=np.array([(moment - first) / PICOSECONDS for moment, _, _, _ in kept]),
        prompt_tokens=np.array([prompt for _, prompt, _, _ in kept]),
        output_tokens=np.array([output for _, _, output, _ in kept]),
        name=path.stem if name is None else name,
        notes=notes,
    )


def _text(path: Path) -> str:
    """The file as text; ValueError where it is none, with what it seems to be."""
    shape = path.stat().st_mode
    if stat.S_ISDIR(shape):
        raise ValueError(f"{path} is a folder: give the trace file inside it")
    if not (stat.S_ISREG(shape) or stat.S_ISFIFO(shape)):
        raise ValueError(f"{path} is a device, not a trace file")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB: cut it into smaller files")
    for magic, kind in _OTHER_FORMATS.items():
        if data.startswith(magic):
            raise ValueError(f"{path.name} is a {kind} file: unpack or export it as CSV first")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path.name} is UTF-16: save it as UTF-8")
    if b"\0" in data:
        raise ValueError(
            f"{path.name}, row {_row(data, data.index(0))}: a NUL byte. This is no text file, or a damaged one"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"{path.name}, row {_row(data, error.start)}"
        raise ValueError(f"{place}: byte 0x{data[error.start]:02x} is not UTF-8. Save the file as UTF-8") from None


def _row(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the number of the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"{path.name}, row {number}: this is not CSV ({error}). Check its quotes") from None
        if any(cell.strip() for cell in cells):
            yield number, cells


def _header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> tuple[int, list[int]]:
    """How many cells a row has, and where the three columns are."""
    number, cells = next(rows, (0, []))
    if not cells:
        raise ValueError(f"{path.name} is empty: a trace begins with the header {','.join(COLUMNS)}")
    found = [cell.strip().lower() for cell in cells]
    missing = [column for column in COLUMNS if column.lower() not in found]
    if missing:
        hint = next(
            (f" (are its cells separated by {mark!r}? Commas are needed)" for mark in ";\t|" if mark in cells[0]), ""
        )
        raise ValueError(
            f"{path.name}, row {number}: no column {' or '.join(missing)}. Needed are {', '.join(COLUMNS)}; found "
            f"{shown(', '.join(cell.strip() for cell in cells))}{hint}"
        )
    for column in COLUMNS:
        if found.count(column.lower()) > 1:
            raise ValueError(
                f"{path.name}, row {number}: two columns are named {column}. Rename the one that is not meant"
            )
    return len(cells), [found.index(column.lower()) for column in COLUMNS]


def _parsed(cells: list[str], width: int, places: list[int]) -> tuple[int, bool, int, int]:
    """Time in picoseconds, whether it has a zone, prompt tokens, output tokens; `_Broken` where one cannot be had."""
    if len(cells) != width:
        raise _Broken(f"it has {len(cells)} cells where the header has {width}", "the wrong number of cells")
    when, prompt, output = (cells[place].strip() for place in places)
    moment, has_zone = _moment(when)
    return moment, has_zone, _count(PROMPT, prompt), _count(OUTPUT, output)


def _moment(cell: str) -> tuple[int, bool]:
    match = _MOMENT.fullmatch(cell)
    parts = match.groups() if match else None
    try:
        day, hour, minute, second, fraction, zone = parts
        hour, minute, second = int(hour), int(minute), int(second)
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError
        seconds = _days(day) * 86_400 + hour * 3_600 + minute * 60 + second - _offset(zone)
    except (TypeError, ValueError):
        raise _Broken(
            f"{TIMESTAMP} is {shown(cell)}, which is no time like '2023-11-16 18:15:46.6805900'",
            f"a broken {TIMESTAMP}",
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


def _count(column: str, cell: str) -> int:
    match = _COUNT.fullmatch(cell)
    if not match:
        why = "is empty" if not cell else f"is {shown(cell)}, which is no whole number of tokens"
        raise _Broken(f"{column} {why}", f"a broken {column}")
    if int(match[1]) > MAX_TOKENS:
        raise _Broken(f"{column} is {shown(cell)}: the most is {MAX_TOKENS:,} tokens", f"a broken {column}")
    if int(match[1]) == 0:
        why = "a failed request?" if column == OUTPUT else "a prompt has at least one token"
        raise _Broken(f"{column} is 0 ({why})", f"0 {column}")
    return int(match[1])


def _report(path: Path, dropped: dict[str, list[int]], kept: int) -> str:
    total = sum(map(len, dropped.values()))
    kinds = ", ".join(f"{len(rows):,} with {kind} (first: row {rows[0]})" for kind, rows in dropped.items())
    return f"{path.name}: {total:,} of {total + kept:,} rows were left out: {kinds}"
