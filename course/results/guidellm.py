"""guidellm: a report with one benchmark a rate, each with a block of statistics a metric and status.

    {"benchmarks": [{"args": {...}, "metrics": {"request_latency": {"successful": {"mean": 0.64, "count": 46,
     "percentiles": {"p50": ...}}, "errored": {...}, "incomplete": {...}, "total": {...}},
     "time_to_first_token_ms": {...}, ...}, "requests": {"successful": [...], ...}}]}

A block that counts nothing is full of zeros: they are missing, not zero. "total" mixes failed requests in, so
"successful" is read. Reports without `metadata` (guidellm 0.2 and 0.3) divide the decode time by all n tokens; later
ones, from 0.4 on, divide the whole time to the last token by n. The inter-token latency divides decode time by n - 1 in
both. Means and percentiles of these two are over tokens, all of a request alike, in both (weights of n and n - 1 in
guidellm/benchmark/benchmark.py of 0.2.0 to 0.3.1). p001 is p0.1.

A warm-up and a cool-down leave a window between start_time and end_time: metrics are of the requests that touch it, the
list of requests is of the whole run. "synchronous", "concurrent" and "throughput" strategies are closed loops; the
others send at planned moments, and their max_concurrency is a ceiling of the client.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from course.results.assemble import Draft, Statistics, finish, requests_of
from course.results.documents import Document
from course.results.load import BURST, CLOSED, OPEN
from course.results.result import Requests, Result
from course.results.rows import (
    NAN,
    count,
    items,
    mapping,
    number,
    part,
    rate,
    setting,
    statistics,
    tokens,
    without_missing,
)

TOOL = "guidellm"
METRICS = {
    "ttft": ("time_to_first_token_ms", 1e-3),
    "tpot": ("time_per_output_token_ms", 1e-3),
    "itl": ("inter_token_latency_ms", 1e-3),
    "e2e": ("request_latency", 1.0),
}
TTFT = ("request sent to the first piece of the answer", True)
E2E = ("request sent to the end of the answer", True)
ITL = ("(last token - first token) / (tokens - 1), mean over tokens: its mean is that of all gaps", False)
FIRST_VERSION = {
    "ttft": TTFT,
    "tpot": ("(last token - first token) / tokens, mean over tokens", False),
    "itl": ITL,
    "e2e": E2E,
}
LATER = {
    "ttft": TTFT,
    "tpot": ("(last token - request sent) / tokens, so with the wait for the first one; mean over tokens", False),
    "itl": ITL,
    "e2e": E2E,
}
SHORT = 0.9  # of the duration asked for; a run below it is pointed out
CLOSED_LOOPS = ("synchronous", "concurrent")
LATE = 0.1  # seconds of delay in sending, on average, that are pointed out


def matches(value: Any) -> bool:
    """Whether a document is a report of this tool."""
    benchmarks = value.get("benchmarks") if isinstance(value, dict) else None
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and isinstance(benchmarks[0], dict)
        and ("metrics" in benchmarks[0])
    )


def read(path: Path, documents: list[Document]) -> list[Result]:
    """Every benchmark of the report."""
    found = []
    for document in documents:
        doc = mapping(document.place(path), document.value)
        for i, benchmark in enumerate(items(document.place(path), doc, "benchmarks") or []):
            place = f"{document.place(path)}, benchmark {i}"
            found.append((place, mapping(place, benchmark), doc))
    if not found:
        raise ValueError(f"{path.name} has no benchmarks")
    names = [path.stem] if len(found) == 1 else [f"{path.stem}:{i}" for i in range(len(found))]
    return [
        _benchmark(place, name, benchmark, "metadata" in doc, doc)
        for name, (place, benchmark, doc) in zip(names, found, strict=True)
    ]


def _benchmark(place: str, name: str, doc: Mapping, later: bool, report: Mapping) -> Result:
    metrics = part(place, doc, "metrics")
    counts: dict[str, float] = {}
    reported: Statistics = {}
    for metric, (key, scale) in METRICS.items():
        block = _good(place, metrics, key)
        here = f"{place}, {key}"
        if count(here, block, "count") > 0:
            counts[metric] = count(here, block, "count")
            reported[metric] = statistics(here, part(here, block, "percentiles"), scale) | statistics(
                here, block, scale
            )
    table, flying, notes = _table(place, doc, counts.get("e2e", NAN))
    totals, disagreement = _totals(place, doc, metrics, counts.get("e2e", NAN))
    notes += disagreement
    totals |= without_missing({"in_flight": flying})
    values: Statistics = {}
    lengths = _good(place, metrics, "output_token_count")
    if "itl" in reported:
        values["itl"] = without_missing({"mean": reported["itl"].get("mean", NAN)})
        if lengths.get("std_dev") == 0:  # equal answers: a mean over tokens is one over requests
            values["tpot"] = dict(values["itl"])
    strategy = part(place, part(place, doc, "config") or part(place, doc, "args"), "strategy")
    keys = ("type_", "rate", "streams", "max_concurrency")
    setup = {key: strategy[key] for key in keys if isinstance(strategy.get(key), str | int | float)}
    loop, load = _load(strategy)
    totals |= load | _asked_lengths(report, doc)
    return finish(
        Draft(TOOL, name, LATER if later else FIRST_VERSION, table, reported, values, totals, setup, {}, notes, loop)
    )


def _load(strategy: Mapping) -> tuple[str | None, dict[str, float]]:
    """The loop and what was asked for. None for a strategy that the report does not name."""
    kind = strategy.get("type_")
    if kind is None:
        return None, without_missing({"requested_rate": setting(strategy, "rate")})
    most = next((value for key in ("streams", "max_concurrency") if (value := setting(strategy, key)) > 0), NAN)
    if kind in CLOSED_LOOPS:
        return CLOSED, without_missing({"max_concurrency": 1.0 if kind == "synchronous" else most})
    if kind == "throughput":
        return (CLOSED if most > 0 else BURST), without_missing({"max_concurrency": most})
    return OPEN, without_missing({"requested_rate": setting(strategy, "rate")})


def _asked_lengths(report: Mapping, doc: Mapping) -> dict[str, float]:
    """Lengths that were asked for: synthetic data as an object, as JSON, or as prompt_tokens=256,output_tokens=128."""
    holders = [report.get("args"), report.get("config"), doc.get("config"), doc.get("args")]
    lengths: dict[str, float] = {}
    for holder in holders:
        data = holder.get("data") if isinstance(holder, dict) else None
        for one in data if isinstance(data, list) else [data]:
            if isinstance(one, str):
                one = _pairs(one)
            if isinstance(one, dict):
                for side in ("prompt", "output"):
                    lengths |= without_missing({f"asked_{side}_tokens": setting(one, f"{side}_tokens")})
    return lengths


def _pairs(text: str) -> dict[str, Any]:
    """The keys of synthetic data in either spelling; empty for a path or a name."""
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}
    pairs = [part.partition("=") for part in text.split(",")]
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def _good(place: str, metrics: Mapping, key: str) -> Mapping:
    return part(f"{place}, {key}", part(place, metrics, key), "successful")


def _totals(place: str, doc: Mapping, metrics: Mapping, in_means: float) -> tuple[dict[str, float], list[str]]:
    """Counts and rates, and if two counts of the same thing differ. in_means: latencies in the block of E2E."""
    of_report = part(place, doc, "request_totals") or part(place, metrics, "request_totals")
    stats = part(place, doc, "run_stats") or part(place, doc, "scheduler_metrics")
    claimed = part(place, stats, "requests_made")
    of_report = of_report or claimed
    totals = {
        "requests": in_means,
        "failed": count(place, of_report, "errored"),
        "incomplete": count(place, of_report, "incomplete"),
        "duration": number(place, doc, "duration"),
        "prompt_tokens": _sum(place, metrics, "prompt_token_count"),
        "output_tokens": _sum(place, metrics, "output_token_count"),
        "requests_per_second": _mean(place, metrics, "requests_per_second"),
        "output_tokens_per_second": _mean(place, metrics, "output_tokens_per_second"),
        "concurrency": _mean(place, metrics, "request_concurrency"),
    }
    notes = []
    successful = count(place, claimed, "successful")
    beside = number(place, doc, "warmup_duration") + number(place, doc, "cooldown_duration")
    if successful > in_means and beside > 0:
        notes.append(
            f"Averages are of the {in_means:,.0f} requests in the measured window of {totals['duration']:.4g} s; the "
            f"other {successful - in_means:,.0f} of {successful:,.0f} were its warm-up and cool-down of {beside:.4g} s"
        )
    elif abs(successful - in_means) > 0:
        notes.append(
            f"Requests that succeeded: {successful:,.0f} by the report, {in_means:,.0f} by its latencies. One is wrong"
        )
    if totals["incomplete"] > 0:
        notes.append(f"Requests cut off at the end of the run, and in no average: {totals['incomplete']:,.0f}")
    speed = _good(place, metrics, "requests_per_second")
    if speed.get("count") and rate(place, speed, "std_dev") > totals["requests_per_second"]:
        notes.append(
            "Its spread of requests/s is that of the gaps between single answers and not a rate of the run, so "
            "it is left out"
        )
    late = number(place, stats, "request_targeted_start_delay_avg")
    if late > LATE:
        notes.append(f"Requests were sent {late:.3g} s late on average, and no latency counts that wait")
    limit = setting(part(place, doc, "args"), "max_duration")
    if totals["duration"] < SHORT * limit:
        notes.append(
            f"The run lasted {totals['duration']:.4g} s of the {limit:.4g} s asked for: too short for its tail"
        )
    return without_missing(totals), notes


def _sum(place: str, metrics: Mapping, key: str) -> float:
    block = _good(place, metrics, key)
    return rate(f"{place}, {key}", block, "total_sum") if block.get("count") else NAN


def _mean(place: str, metrics: Mapping, key: str) -> float:
    block = _good(place, metrics, key)
    return rate(f"{place}, {key}", block, "mean") if block.get("count") else NAN


def _table(place: str, doc: Mapping, counted: float) -> tuple[Requests | None, float, list[str]]:
    """The requests of all statuses that the averages count, the mean number in flight, and a sentence if need be.

    None if the report keeps no requests, or other ones than it counted.
    """
    lists = part(place, doc, "requests")
    rows = []
    for status in ("successful", "errored"):
        for i, value in enumerate(items(f"{place}, requests", lists, status) or []):
            rows.append(_row(f"{place}, {status} request {i}", value, status != "successful"))
    if not rows:
        return None, NAN, []
    failed, start, prompt, output, ttft, e2e = (np.array(column) for column in zip(*rows, strict=True))
    failed = failed.astype(bool)
    inside, window = _window(place, doc, counted, failed, start, start + e2e)
    if (~failed & inside).sum() != counted:
        return (
            None,
            NAN,
            [
                f"The report keeps {(~failed).sum():,} of the {counted:,.0f} requests that it counted: no table"
                if (~failed).sum() < counted
                else f"The report counted {counted:,.0f} requests, and which of its {(~failed).sum():,} those are "
                "is not to be seen: no table"
            ],
        )
    flying = NAN
    if window is not None:
        first, last = window
        shared = np.minimum(start + e2e, last) - np.maximum(start, first)
        flying = float(np.nansum(np.clip(shared, 0, None))) / (last - first)
    start = start[inside]
    columns = (prompt[inside], output[inside], ttft[inside], e2e[inside])
    return requests_of(failed[inside], start - start.min(), *columns), flying, []


def _window(
    place: str, doc: Mapping, counted: float, failed: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, tuple[float, float] | None]:
    """The requests that the averages count: all, or those of the window.

    guidellm counts all requests that touch it (0.4 to 0.8); other ways to count an edge are tried if that gives another
    number than the report's.
    """
    everybody = np.ones(len(start), dtype=bool)
    first, last = number(place, doc, "start_time"), number(place, doc, "end_time")
    if (~failed).sum() == counted or not last > first:
        return everybody, None
    with np.errstate(invalid="ignore"):
        ends = np.where(np.isnan(end), start, end)
        choices = (
            (ends >= first) & (start <= last),
            (ends > first) & (start < last),
            (start >= first) & (ends <= last),
            (ends >= first) & (ends <= last),
        )
    for inside in choices:
        if (~failed & inside).sum() == counted:
            return inside, (first, last)
    return everybody, None


def _row(place: str, value: Any, failed: bool) -> tuple:
    """Failed, start, prompt and output tokens, TTFT and E2E; times of either version's keys."""
    row = mapping(place, value)
    timings = part(place, part(place, row, "info"), "timings")

    def moment(key: str, old: str) -> float:
        instant = number(place, timings, key)
        return number(place, row, old) if np.isnan(instant) else instant

    start, end = moment("request_start", "start_time"), moment("request_end", "end_time")
    first, last = moment("first_token_iteration", "first_token_time"), moment("last_token_iteration", "last_token_time")
    if np.isnan(start):
        raise ValueError(f"{place}: no time at which it was sent: info.timings.request_start or start_time is needed")
    last = end if np.isnan(last) else last
    prompt, output = tokens(place, row, "prompt_tokens"), tokens(place, row, "output_tokens")
    if failed or not output > 0:
        return True, start, prompt, output, NAN, NAN
    for name, late in (("its first token", first), ("its last token", last)):
        if not start <= late <= start + 1e6 and not np.isnan(late):
            raise ValueError(
                f"{place}: {name} is {late - start:.6g} s after it was sent. Check that these times are of one clock"
            )
    return False, start, prompt, output, first - start, last - start
