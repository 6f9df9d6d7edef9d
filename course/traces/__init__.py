"""Requests from trace files that people really have, each format read to the same Workload.

    traces.read("conversation_trace.jsonl")             # the format is told by the content
    traces.read("mine.csv", format="csv")

One module a format says what it looks like: azure, burstgpt, mooncake, qwen_bailian, servegen, splitwise, vidur, plain.
Nothing is repaired or dropped in silence: a file is read as it stands, or refused with the row and what to do about it;
what a reader must know is in the workload's `notes`. Row numbers are those an editor shows; the header is row 1.
"""

import warnings
from dataclasses import replace
from importlib.resources import files
from os import PathLike
from pathlib import Path

from course.base.settings import MAX_REQUESTS, quote, whole
from course.base.textfiles import path_of, text
from course.traces import azure, detect, remarks, servegen
from course.traces.columns import Columns
from course.traces.rows import BrokenRow, FailedRequest, Reader, Row
from course.workload import Workload, arrivals

MAX_BYTES = 2**30  # four times what 5 million rows take
FORMATS = tuple(detect.READERS)
HINT = f". Other formats are known by their columns or keys: {', '.join(FORMATS[1:])}"


def example() -> Path:
    """The path of a small trace that comes with the course: 2,000 rows, made by `course.workload.synthetic`."""
    return Path(str(files("course") / "data" / "azure_style_conv.csv"))


def read(
    path: str | PathLike,
    *,
    on_error: str = "raise",
    sort: bool = False,
    name: str | None = None,
    format: str | None = None,
    max_model_len: int | None = None,
    spread: bool = False,
    rate: float | None = None,
    seed: int = 0,
    dataset: str | PathLike | None = None,
) -> Workload:
    """The requests of a trace file; arrivals in seconds after the first row.

    Times are subtracted as integers, so that no digit of theirs is lost before the difference becomes a float64. LF or
    CRLF, a missing last newline, a byte-order mark, quoted cells and blank lines are all fine. If a trace has block
    ids of its prompts, they are the workload's `prefix`, all bits kept.

    on_error: "raise" refuses the file at the first broken row: the wrong number of cells, a time or a count that is
        none, a count of 0. "skip" leaves such rows out, and says how many and why in a warning and in the result's
        `notes`. Requests that a format marks as failed are left out, and reported, in both cases.
    sort: put the rows in order of time; without it, a row before its predecessor refuses the file.
    name: the workload's name, the file's by default.
    format: one of FORMATS; told by the content if None.
    max_model_len: prompt and output together above it make a broken row.
    spread: spread the requests of equal arrival evenly until the next arrival; for times recorded in buckets.
    rate: requests/s, for a file without times: Poisson arrivals drawn with `seed`. Without it they all arrive at 0.
    seed, dataset: of ServeGen's windows, the draw and the file of lengths; by default the one beside the trace.

    ValueError, with the row, for anything that is no such trace; OSError for a file that cannot be opened.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", not {quote(on_error)}')
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {quote(format)}")
    longest = None if max_model_len is None else whole("max_model_len", max_model_len)
    rate = None if rate is None else arrivals.checked_rate(rate)
    path = path_of(path, "a trace")
    content = text(path, "trace", limit=MAX_BYTES)
    kind = format or detect.format_of(path, content)
    if dataset is not None and kind != "servegen":
        raise ValueError(f"dataset is for a trace of ServeGen, and {path.name} was read as {kind}: leave it out")
    if kind == "servegen":
        lengths = None if dataset is None else path_of(dataset, "a dataset")
        load, note = servegen.read(path, content, lengths, seed, on_error)
        return _with_name(load, path, [f"{path.name}: {note}"], name)
    reader = azure.Reader(path, content, HINT) if kind == "azure" else detect.READERS[kind].Reader(path, content)

    columns, trouble = _collect(path, reader, on_error, longest)
    if not columns:
        nothing = "a header but no rows" if kind in detect.WITH_HEADER else "no rows"
        raise ValueError(trouble[0] if trouble else f"{path.name} has {nothing}: there is nothing to replay")
    load, remarks_on_times = columns.workload(
        path, sort=sort, spread=spread, rate=rate, seed=seed, block_tokens=getattr(reader, "block_tokens", None)
    )
    notes = [*trouble, *filter(None, [remarks.on_columns(path.name, getattr(reader, "unread", ()))]), *remarks_on_times]
    for note in notes:
        warnings.warn(note, stacklevel=2)
    if reader.note:
        notes.append(f"{path.name}: {reader.note}")
    return _with_name(load, path, notes, name)


def _collect(path: Path, reader: Reader, on_error: str, longest: int | None) -> tuple[Columns, list[str]]:
    """The rows that can be used, and a sentence for each kind of trouble with the others."""
    columns = Columns()
    broken: dict[str, list[int]] = {}
    failed: dict[str, list[int]] = {}
    zoned: bool | None = None
    for number, cells in reader.rows:
        try:
            row = reader.parse(cells)
            _check(row, zoned, longest)
        except FailedRequest as error:
            failed.setdefault(error.kind, []).append(number)
            continue
        except BrokenRow as error:
            if on_error == "raise":
                raise ValueError(
                    f'{path.name}, row {number}: {error}. Correct the row, or leave such rows out with on_error="skip"'
                ) from None
            broken.setdefault(error.kind, []).append(number)
            continue
        zoned = row.zoned
        columns.add(row, number)
        if len(columns) > MAX_REQUESTS:
            raise ValueError(f"{path.name} has more than {MAX_REQUESTS:,} requests: cut it into smaller files")
    trouble = [remarks.left_out(path.name, broken, len(columns))] if broken else []
    if failed:
        total = len(columns) + sum(map(len, failed.values()))
        trouble.append(remarks.on_failures(path.name, failed, total))
    return columns, trouble


def _check(row: Row, zoned: bool | None, longest: int | None) -> None:
    """Raise BrokenRow if a row does not fit the rows before it, or the context."""
    if zoned not in (None, row.zoned):
        raise BrokenRow(f"{azure.TIMESTAMP} must have a time zone on all rows or on none", "another time zone")
    if longest is not None and row.prompt + row.output > longest:
        raise BrokenRow(
            f"it needs {row.prompt + row.output:,} tokens of context, more than max_model_len ({longest:,})",
            f"a context above {longest:,} tokens",
        )


def _with_name(load: Workload, path: Path, notes: list[str], name: str | None) -> Workload:
    """The workload under its name, with what is to be known of it."""
    long = remarks.on_contexts(path.name, load.prompt_tokens + load.output_tokens)
    return replace(load, name=path.stem if name is None else name, notes=(*notes, *([long] if long else [])))
