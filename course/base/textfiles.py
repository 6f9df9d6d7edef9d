"""Text files from strangers: whole, of a size that fits, and parsed to values or to one sentence.

Row numbers are those that an editor shows; the first line is row 1.
"""

import json
import math
import os
import stat
import time
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from course.base.settings import quote

MAX_BYTES = 2**30  # four times what 5 million rows of a trace take
MAX_JSON_BYTES = 2**28  # parsed, JSON takes about ten times its size
MAX_LINE = 2**24  # of JSON lines; a prompt of a million tokens has 62,500 block ids, less than 1 MiB
MOST_DIGITS = 300
"""Of a whole number: sums and conversions to float go to 308."""
PIPE_SECONDS = 5.0  # to wait for the program that writes into a named pipe
_OTHER_FORMATS = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip or Excel",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"PAR1": "Parquet",
}


def path_of(path: str | PathLike, what: str) -> Path:
    """`path` as a Path; ValueError if it is none. `what`: the kind of file, for that sentence."""
    try:
        return Path(fspath(path))
    except TypeError:
        raise ValueError(f"{what} is read from a path, not from {quote(path)}") from None


def text(path: Path, what: str, form: str = "CSV", limit: int | None = None) -> str:
    """The file as text; ValueError if it is none, with what it seems to be; OSError if it cannot be opened.

    what: the kind of file wanted, such as "trace". form: what other formats should be exported as. limit: bytes.
    """
    limit = MAX_BYTES if limit is None else limit
    shape = path.stat().st_mode
    if stat.S_ISDIR(shape):
        raise ValueError(f"{path} is a folder: give the {what} file inside it")
    if not (stat.S_ISREG(shape) or stat.S_ISFIFO(shape)):
        raise ValueError(f"{path} is a device, not a {what} file")
    data = _from_a_pipe(path, what, limit + 1) if stat.S_ISFIFO(shape) else _start_of(path, limit + 1)
    if len(data) > limit:
        raise ValueError(f"{path.name} is larger than {limit // 2**20} MiB: split it into smaller files")
    for magic, kind in _OTHER_FORMATS.items():
        if data.startswith(magic):
            raise ValueError(f"{path.name} is a {kind} file: unpack or export it as {form} first")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path.name} is UTF-16: save it as UTF-8")
    if b"\0" in data:
        raise ValueError(
            f"{path.name}, row {_row(data, data.index(0))}: a NUL byte. This is not a text file, or it is damaged"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"{path.name}, row {_row(data, error.start)}"
        raise ValueError(f"{place}: byte 0x{data[error.start]:02x} is not UTF-8. Save the file as UTF-8") from None


def _start_of(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most)


def _from_a_pipe(path: Path, what: str, most: int) -> bytes:
    """What is written into a named pipe; ValueError if no program opens it for writing within PIPE_SECONDS."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        end = time.monotonic() + PIPE_SECONDS
        while True:
            try:
                first = os.read(handle, min(most, 65_536))
            except BlockingIOError:  # there is a writer, who may think as long as it takes
                first = b""
                break
            if first:
                break
            if time.monotonic() > end:
                raise ValueError(
                    f"{path} is a pipe that nobody writes to: first start the program that writes the {what}"
                )
            time.sleep(0.02)
        os.set_blocking(handle, True)
        return first + file.read(most - len(first))


def _row(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def json_value(path: Path, content: str, row: int | None = None) -> Any:
    """What JSON says; NaN and Infinity are read, as Python writes them. ValueError, with the place, for anything else.

    row: the line that `content` is, if it is one line of a file.
    """
    try:
        return json.loads(content, parse_int=_whole)
    except json.JSONDecodeError as error:
        where: int | None = row if row is not None else error.lineno
        why = f"this is not JSON ({error.msg} at character {error.colno})"
        cut = ". Is the file complete?" if error.pos >= len(content.rstrip()) else ""
    except RecursionError:
        where, why, cut = row, "its brackets are nested too deeply to be read", ""
    except ValueError:
        where, why, cut = row, f"it has a number with more than {MOST_DIGITS} digits", ""
    place = path.name if where is None else f"{path.name}, row {where}"
    raise ValueError(f"{place}: {why}{cut}") from None


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError
    return int(digits)


def json_lines(path: Path, content: str, limit: int = MAX_LINE) -> Iterator[tuple[int, Any]]:
    """Each line that is not blank, parsed, with its number. ValueError at the first that is no JSON, or too long.

    limit: characters.
    """
    start, number = 0, 0
    while start < len(content):
        end = content.find("\n", start)
        end = len(content) if end < 0 else end
        number += 1
        if end - start > limit:
            raise ValueError(
                f"{path.name}, row {number}: a line of more than {limit // 2**20} MiB. Is this a file of JSON lines?"
            )
        line = content[start:end].strip()
        if line:
            yield number, json_value(path, line, number)
        start = end + 1


def finite(value: Any) -> bool:
    """Whether `value` is a number that JSON may hold and arithmetic may use: no bool, no NaN, no infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float64
        return False
