"""guidellm's CSV as the documents of its JSON report, one a row; `guidellm.read` reads both.

    Benchmark,Request Counts,Request Latency,Time to First Token,...
    Strategy,Successful,Successful Sec,Successful ms,...            (0.4 and later: three lines of names)
    ,,Mean,Percentiles,...

    Name,Duration,Successful Requests,Successful Request latency mean,...    (0.2 and 0.3: one line)

Layouts and spellings: guidellm/benchmark/output.py of 0.2.1 and 0.3.1, outputs/csv.py of 0.4.0 to 0.8.1. A table has no
requests, and of each metric eleven percentiles. Until 0.3 the columns of a metric without values are zeros.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from course.results.documents import Document

PERCENTILES = ("min", "p001", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max")
ELEVEN = "min_0_1_1_5_10_25_75_90_95_99_max"  # as the older tables name them
# Group and unit of a column, without the status -> the key of the report.
METRICS = {
    ("Request Latency", "Sec"): "request_latency",
    ("Time to First Token", "ms"): "time_to_first_token_ms",
    ("Time per Output Token", "ms"): "time_per_output_token_ms",
    ("Inter Token Latency", "ms"): "inter_token_latency_ms",
    ("Server Throughput", "Requests/Sec"): "requests_per_second",
    ("Server Throughput", "Concurrency"): "request_concurrency",
    ("Token Metrics", "Input Tokens"): "prompt_token_count",
    ("Token Metrics", "Output Tokens"): "output_token_count",
    ("Token Throughput", "Output Tokens/Sec"): "output_tokens_per_second",
}
INTERVALS = ("Mean CI", "Percentile CIs")  # how sure the statistics are: none of them themselves
STATUSES = ("successful", "incomplete", "errored", "total")
TELLING = (",Successful Requests,", ",Request Latency,Request Latency,")  # in the first line
GROUPS = ("Benchmark", "Timings", "Request Counts", "Scheduler Metrics")  # that each later table has

Row = dict[tuple[str, ...], str]


def is_table(content: str) -> bool:
    """Whether a text begins as one of these tables does."""
    head = content.lstrip("\ufeff \r\n").partition("\n")[0]
    return head.startswith(("Run Info,Run Info,", "Type,Run Id,Id,Name,")) or any(name in head for name in TELLING)


def table(path: Path, content: str) -> list[Document]:
    """Each row as a report of one benchmark. ValueError for ragged rows, or if the counts are missing."""
    lines = csv.reader(io.StringIO(content.lstrip("\ufeff \r\n")))
    try:
        first = next(lines)
        depth = 1 if "Id" in first or "Successful Requests" in first else 3
        names = [tuple(name) for name in zip(first, *[next(lines) for _ in range(depth - 1)], strict=True)]
        found = []
        for cells in filter(None, lines):
            if len(cells) != len(names):
                raise ValueError(
                    f"{path.name}, row {lines.line_num}: {len(cells)} cells under {len(names)} column names"
                )
            row = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
            found.append(Document(lines.line_num, _old(row) if depth == 1 else _later(row)))
    except (csv.Error, StopIteration, ValueError) as error:
        why = str(error) or "its lines of column names are not complete"
        raise ValueError(why if path.name in why else f"{path.name}: {why}") from None
    if not found:
        raise ValueError(f"{path.name} has column names but no rows")
    return found


def _old(row: Row) -> dict[str, Any]:
    """A row of 0.2 or 0.3 as a report."""
    cells = {_slug(name): cell for (name,), cell in row.items()}
    metrics = {name: column for name in cells if (column := _old_column(name)) is not None}
    counts = {name.replace("_requests", ""): _value(cell) for name, cell in cells.items() if "_requests" in name}
    columns = ((*column, cells[name]) for name, column in metrics.items())
    benchmark = {name: _value(cell) for name, cell in cells.items() if name not in metrics}
    benchmark |= {"request_totals": counts, "metrics": _blocks(columns, counts.get("successful"))}
    return {"benchmarks": [benchmark]}


def _old_column(name: str) -> tuple[str, str] | None:
    """The metric and the statistic of a column of answered requests, None for another column."""
    name = name.removeprefix("successful_") if name != "successful_requests" else ""
    known = next((metric for metric in METRICS.values() if name.startswith(f"{metric}_")), None)
    other = re.fullmatch(r"(.+)_(mean|median|std_dev|min_0_1_.*)", name)  # of a metric that is not known
    metric = known or (other[1] if other else "")
    if not metric or metric.partition("_")[0] in STATUSES:
        return None
    statistic = name[len(metric) + 1 :]
    return metric, "percentiles" if statistic == ELEVEN else statistic


def _later(row: Row) -> dict[str, Any]:
    """A row of 0.4 or later as a report."""
    groups: dict[str, dict[str, Any]] = {}
    for (group, name, *_), cell in row.items():
        groups.setdefault(group, {})[_slug(name)] = _value(cell)
    if missing := [group for group in GROUPS if group not in groups]:
        raise ValueError(f"no column stands under {' or '.join(missing)}")
    columns = (
        (METRICS.get((group, unit)) or _slug(f"{group} {unit}"), _slug(statistic), cell)
        for (group, name, statistic), cell in row.items()
        if statistic not in ("", *INTERVALS) and (unit := name.removeprefix("Successful ")) != name
    )
    run, config, scheduler = groups.get("Run Info", {}), groups["Benchmark"], groups["Scheduler Metrics"]
    if "strategy" in config:
        config["strategy"] = _strategy(str(config["strategy"]), run.get("profile"), run.get("run_index"))
    made = {status: scheduler.get(f"requests_made_{status}") for status in STATUSES}
    counts, times = groups["Request Counts"], groups["Timings"]
    benchmark = {
        **{name: value for name, value in times.items() if not isinstance(value, str)},
        "config": config,
        "warmup_duration": times.get("warmup"),
        "cooldown_duration": times.get("cooldown"),
        "scheduler_metrics": {**scheduler, "requests_made": made},
        "metrics": {"request_totals": counts, **_blocks(columns, counts.get("successful"))},
    }
    # The settings of all runs, which the report has under another name.
    more = {name.replace("arguments", "config"): value for name, value in groups.get("Runtime Info", {}).items()}
    return {**more, "metadata": {}, "benchmarks": [benchmark]}


def _blocks(columns: Iterable[tuple[str, str, str]], successful: Any) -> dict[str, Any]:
    """Columns (metric, statistic, cell) as the report's blocks. A block that is all zeros counted nothing."""
    if not isinstance(successful, int):
        raise ValueError("no column says how many requests were Successful")
    blocks: dict[str, dict[str, Any]] = {}
    for metric, statistic, cell in columns:
        value = _value(cell)
        block = blocks.setdefault(metric, {})
        if statistic == "percentiles":
            if not isinstance(value, list) or len(value) != len(PERCENTILES):
                raise ValueError(f"the percentiles of {metric} are {cell[:80]}: {', '.join(PERCENTILES)} were expected")
            block["percentiles"] = dict(zip(PERCENTILES, value, strict=True))
        else:
            block[statistic] = value
    for metric, block in blocks.items():
        if "mean" not in block and metric in METRICS.values():
            raise ValueError(f"no column has the Mean of {metric}, only {', '.join(block)}")
        some = any(block.get("percentiles", {}).values()) or bool(block.get("mean"))
        block["count"] = successful if some else 0
        if some and isinstance(block.get("mean"), int | float):
            block["total_sum"] = block["mean"] * successful
    return {metric: {"successful": block} for metric, block in blocks.items()}


def _strategy(text: str, profile: Any, index: Any) -> Mapping[str, Any]:
    """The strategy: until 0.6 its kind, with rates or streams of all runs in the profile; later as constant@2.00."""
    kind, at, amount = text.partition("@")
    if not kind:
        return {}
    key = {"concurrent": "streams", "throughput": "max_concurrency", "trace": "time_scale"}.get(kind, "rate")
    several = profile.get(key) if isinstance(profile, dict) and profile.get("type_") != "sweep" else None
    if at:
        value = _value(amount)
    elif isinstance(several, list):
        value = several[index] if isinstance(index, int) and index < len(several) else None
    else:
        value = several
    return {"type_": kind} if value is None else {"type_": kind, key: value}


def _slug(text: str) -> str:
    """A name as a key of the report: letters, digits and underscores."""
    return re.sub(r"\W+", "_", text.lower()).strip("_")


def _value(cell: Any) -> Any:
    """A number, a list or an object if the cell is one; else its text."""
    try:
        return json.loads(cell)
    except (TypeError, ValueError, RecursionError):
        return cell
