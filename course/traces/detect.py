"""Which format a trace has, told by what is in the file."""

from pathlib import Path
from typing import Any

from course.base.textfiles import json_value
from course.traces import azure, blocks, burstgpt, mooncake, plain, qwen_bailian, servegen, splitwise, table, vidur

# Modules, each with `matches` and a `Reader` (course.traces.rows.Reader); ServeGen's has `read`, for it draws.
READERS: dict[str, Any] = {
    "azure": azure,
    "burstgpt": burstgpt,
    "mooncake": mooncake,
    "qwen-bailian": qwen_bailian,
    "servegen": servegen,
    "splitwise": splitwise,
    "vidur": vidur,
    "csv": plain,
}
WITH_HEADER = ("azure", "burstgpt", "splitwise", "vidur", "csv")  # the widest last


def format_of(path: Path, content: str) -> str:
    """The key in READERS; ValueError for JSON of another kind, "azure" if nothing fits, to be refused by it."""
    if content.lstrip()[:1] in ("{", "["):
        return _of_json(path, content)
    first = next(table.lines(path, content), (0, []))[1]
    if servegen.matches(first):
        return "servegen"
    header = table.names(first)
    return next((name for name in WITH_HEADER if READERS[name].matches(header)), "azure")


def _of_json(path: Path, content: str) -> str:
    rows = blocks.sample(path, content)
    if not rows:
        _refuse_document(path, content)
    if not rows or blocks.looks_like(rows[0]):
        return "qwen-bailian" if qwen_bailian.matches(rows) else "mooncake"
    if {"queued_ts", "arrival_time"} <= set(rows[0]):
        raise ValueError(f"{path.name} is a log of a run: course.results.read(...).workload() gives its requests")
    raise ValueError(
        f"{path.name}, row 1: no trace format has the keys {', '.join(list(rows[0])[:6])}. Of JSON lines, Mooncake and "
        f"Qwen-Bailian are read, with {blocks.TIME}, {blocks.PROMPT} and {blocks.OUTPUT}"
    )


def _refuse_document(path: Path, content: str) -> None:
    """ValueError for a file that is one JSON document and not a line a request; nothing if it is no JSON at all."""
    try:
        whole = json_value(path, content)
    except ValueError:
        return
    first = next(iter(whole.values()), None) if isinstance(whole, dict) else None
    if isinstance(first, dict) and {"input_tokens", "output_tokens"} <= set(first):
        raise ValueError(
            f"{path.name} holds the lengths of a client of ServeGen: give its trace, with dataset= this file"
        )
    raise ValueError(f"{path.name} is one JSON document. Traces in JSON must have one object per line")
