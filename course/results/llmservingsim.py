"""Request logs of the vLLM runs that come with LLMServingSim: requests.jsonl, with meta.json and timeseries.csv.

    {"request_id": "bench-0", "input_toks": 2358, "output_toks": 531, "arrival_time": 1777142838.33,
     "queued_ts": 479748.34, "scheduled_ts": 479748.34, "first_token_ts": 479748.51, "last_token_ts": 479764.05}

arrival_time is wall-clock time, the others are a monotonic clock, so only differences within each are used: latencies
count from queued_ts, when the engine took the request. scheduled_ts is the first admission; preemptions do not move it.
"""

import csv
import io
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from course.base.settings import quote
from course.base.textfiles import MAX_JSON_BYTES, finite, json_value, text
from course.results import remarks
from course.results.assemble import Draft, finish
from course.results.documents import Document
from course.results.result import Requests, Result
from course.results.rows import NAN, mapping, number, tokens

TOOL = "LLMServingSim request log"
CLOCKS = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
COLUMNS = ("input_toks", "output_toks", "arrival_time", *CLOCKS)
SETTINGS = (
    "tensor_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "dtype",
    "kv_cache_dtype",
)
CACHE = ("num_gpu_blocks", "block_size", "num_kv_tokens", "gpu_memory_utilization", "enable_prefix_caching")
MEANINGS = {
    "ttft": ("queued_ts to first_token_ts, on the engine's clock", True),
    "e2e": ("queued_ts to last_token_ts, on the engine's clock", True),
    "queue_wait": ("queued_ts to scheduled_ts, the first admission", True),
}


def matches(value: Any) -> bool:
    """Whether the first line of a file is one of these."""
    return isinstance(value, dict) and "queued_ts" in value and "input_toks" in value


def read(path: Path, documents: list[Document]) -> list[Result]:
    """The one run of a request log. ValueError, with the row, for one that is broken."""
    lines = [_row(document.place(path), document.value) for document in documents]
    arrived, prompt, output, *clocks = np.array(lines).T
    queued, scheduled, first, last = clocks
    failed = np.isnan(last) | np.isnan(first) | np.isnan(queued) | ~(output > 0)
    tpot = np.where(output > 1, (last - first) / np.maximum(output - 1, 1), NAN)
    ttft, tpot, e2e, queue_wait = (
        np.where(failed, NAN, values) for values in (first - queued, tpot, last - queued, scheduled - queued)
    )
    table = Requests(
        arrival=arrived - np.nanmin(arrived),
        prompt_tokens=prompt,
        output_tokens=output,
        ttft=ttft,
        tpot=tpot,
        e2e=e2e,
        queue_wait=queue_wait,
        failed=failed,
    )
    setup, notes = _setup(path, len(table))
    series = _series(path)
    totals: dict[str, float] = {}
    if not failed.all():
        # By the engine's clock alone: the first request taken to the last token.
        duration = float(np.nanmax(last[~failed]) - np.nanmin(queued))
        totals |= remarks.rates(remarks.totals_of(table), duration, float(np.nansum(table.e2e)))
    notes += _lateness(arrived, queued)
    usage = series.get("kv_usage")
    if usage is not None:
        totals["kv_peak"] = float(usage.max())
        unsure = ". Its file never says more than 1: is that a share, and not percent?" if usage.max() <= 0.01 else ""
        notes.append(f"KV cache in use: {usage.max():.1%} at the most, from one reading per tick{unsure}")
    return [finish(Draft(TOOL, path.stem, MEANINGS, table, {}, {}, totals, setup, series, notes))]


def _row(place: str, value: Any) -> tuple[float, ...]:
    row = mapping(place, value)
    missing = [name for name in COLUMNS if name not in row]
    if missing:
        raise ValueError(f"{place}: no {' and no '.join(missing)}. Each row of a request log has {', '.join(COLUMNS)}")
    times = [number(place, row, name) for name in ("arrival_time", *CLOCKS)]
    for name, moment in zip(("arrival_time", *CLOCKS), times, strict=True):
        if not (abs(moment) <= 1e12 or np.isnan(moment)):
            raise ValueError(f"{place}: {name} is {quote(row[name])}, which is not a time in seconds")
    if np.isnan(times[0]):
        raise ValueError(f"{place}: arrival_time is null, so it is not known when this request arrived")
    clocks = [(name, moment) for name, moment in zip(CLOCKS, times[1:], strict=True) if not np.isnan(moment)]
    for (before, early), (after, late) in pairwise(clocks):
        if not early <= late <= early + 1e6:
            why = f"{early - late:.6g} s before" if late < early else f"{late - early:.3g} s after"
            raise ValueError(f"{place}: {after} is {why} {before}. Are these times of one clock?")
    return times[0], tokens(place, row, "input_toks"), tokens(place, row, "output_toks"), *times[1:]


def _lateness(arrived: np.ndarray, queued: np.ndarray) -> list[str]:
    """How long after their arrival the engine took the requests, as far as clocks with unknown zeros can tell."""
    late = queued - arrived
    if not np.isfinite(late).any():
        return []
    late = late - np.nanmin(late)
    return [
        f"TTFT and E2E count from queued_ts; the engine took a request {np.nanmean(late):.3f} s after its arrival_time "
        f"on average and {np.nanmax(late):.3f} s at the most, beyond the least (the two clocks have different zeros)"
    ]


def _beside(path: Path, name: str) -> Path | None:
    """The file of that kind that belongs to the log: X_meta.json to X_requests.jsonl."""
    if "requests.jsonl" not in path.name:
        return None
    file = path.with_name(path.name.replace("requests.jsonl", name))
    return file if file.is_file() else None


def _setup(path: Path, rows: int) -> tuple[dict[str, Any], list[str]]:
    """Model, engine and memory from meta.json, flat, and sentences about it."""
    beside = _beside(path, "meta.json")
    if beside is None:
        return {}, ["There is no meta.json beside the log: model, GPU and engine settings are not known"]
    meta = mapping(beside.name, json_value(beside, text(beside, "meta", "JSON", MAX_JSON_BYTES)))

    def part(key: str) -> Mapping:
        return mapping(f"{beside.name}, {key}", meta.get(key) or {})

    setup: dict[str, Any] = {"model": meta.get("model"), "vllm_version": meta.get("vllm_version")}
    setup |= {name: part("engine_kwargs").get(name) for name in SETTINGS}
    setup |= {name: part("kv_cache").get(name) for name in CACHE}
    setup |= {
        "gpu": part("hardware").get("device_name"),
        "gpu_memory_bytes": part("hardware").get("device_total_memory_bytes"),
        "started_at": meta.get("started_at"),
    }
    setup = {name: value for name, value in setup.items() if isinstance(value, str | int | float)}
    announced_rows = meta.get("num_requests")
    if finite(announced_rows) and announced_rows != rows:
        return setup, [
            f"{beside.name} speaks of {announced_rows:,} requests, the log holds {rows:,}: check that it is complete"
        ]
    return setup, []


def _series(path: Path) -> dict[str, np.ndarray]:
    """timeseries.csv by column: t [s], running, waiting, preempted, ... and kv_usage as a share of the pool.

    A usage of 0 throughout was not measured (early versions wrote that) and is left out.
    """
    beside = _beside(path, "timeseries.csv")
    if beside is None:
        return {}
    rows = [row for row in csv.reader(io.StringIO(text(beside, "timeseries"))) if row]
    if len(rows) < 2:
        return {}
    try:
        columns = np.array([[float(cell) for cell in row] for row in rows[1:]]).T
        series = dict(zip((name.strip() for name in rows[0]), columns, strict=True))
    except ValueError:
        raise ValueError(f"{beside.name} is not a table of numbers under {quote(','.join(rows[0]))}") from None
    usage = series.pop("kv_cache_pct", None)
    if usage is not None and usage.any():
        if not ((usage >= 0) & (usage <= 100)).all():
            raise ValueError(f"{beside.name}: kv_cache_pct is in percent, 0 to 100, and reaches {usage.max():g}")
        series["kv_usage"] = usage / 100
    return series
