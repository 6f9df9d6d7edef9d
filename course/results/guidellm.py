"""guidellm: a report with one benchmark a rate, each with a block of statistics a metric and status.

    {"benchmarks": [{"args": {...}, "metrics": {"request_latency": {"successful": {"mean": 0.64, "count": 46,
     "percentiles": {"p50": ...}}, "errored": {...}, "incomplete": {...}, "total": {...}},
     "time_to_first_token_ms": {...}, ...}, "requests": {"successful": [...], ...}}]}

A block that counts nothing is full of zeros: they are missing, not zero. "total" mixes failed requests in, so
"successful" is read. Reports without `metadata` (version 0) divide the decode time by all n tokens; later ones divide
the whole time to the last token by n. The inter-token latency divides decode time by n - 1 in both; a percentile of it
is over requests in version 0, and over tokens, all of a request alike, later. p001 is p0.1.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from course.results.assemble import Draft, Statistics, finish, requests_of
from course.results.documents import Document
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
FIRST_VERSION = {
    "ttft": TTFT,
    "tpot": ("(last token - first token) / tokens, and 0 for none, mean over requests", False),
    "itl": ("(last token - first token) / (tokens - 1), and 0 for one token: what is called TPOT here", False),
    "e2e": E2E,
}
LATER = {
    "ttft": TTFT,
    "tpot": ("(last token - request sent) / tokens, so with the wait for the first one; mean over tokens", False),
    "itl": ("(last token - first token) / (tokens - 1), mean over tokens: its mean is that of all gaps", False),
    "e2e": E2E,
}
SHORT = 0.9  # of the duration asked for; a run below it is pointed out


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
        benchmarks = items(document.place(path), doc, "benchmarks") or []
        for i, benchmark in enumerate(benchmarks):
            place = f"{document.place(path)}, benchmark {i}"
            name = path.stem if len(benchmarks) == 1 else f"{path.stem}:{i}"
            found.append(_benchmark(place, name, mapping(place, benchmark), "metadata" in doc))
    if not found:
        raise ValueError(f"{path.name} has no benchmarks")
    return found


def _benchmark(place: str, name: str, doc: Mapping, later: bool) -> Result:
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
    table, notes = _table(place, doc, counts.get("e2e", NAN))
    totals, disagreement = _totals(place, doc, metrics, counts.get("e2e", NAN))
    notes += disagreement
    values: Statistics = {}
    lengths = _good(place, metrics, "output_token_count")
    if "itl" in reported and later:
        values["itl"] = without_missing({"mean": reported["itl"].get("mean", NAN)})
        if lengths.get("std_dev") == 0:  # equal answers: a mean over tokens is one over requests
            values["tpot"] = dict(values["itl"])
    elif "itl" in reported:
        values["tpot"] = dict(reported["itl"])
    strategy = part(place, part(place, doc, "config") or part(place, doc, "args"), "strategy")
    setup = {
        key: strategy[key] for key in ("type_", "rate", "max_concurrency") if isinstance(strategy.get(key), str | int)
    }
    totals |= without_missing({"requested_rate": setting(strategy, "rate")})
    return finish(
        Draft(TOOL, name, LATER if later else FIRST_VERSION, table, reported, values, totals, setup, {}, notes)
    )


def _good(place: str, metrics: Mapping, key: str) -> Mapping:
    return part(f"{place}, {key}", part(place, metrics, key), "successful")


def _totals(place: str, doc: Mapping, metrics: Mapping, counted: float) -> tuple[dict[str, float], list[str]]:
    """Counts and rates, and where two counts of the same thing differ. counted: latencies in the block of E2E."""
    made = part(place, doc, "request_totals") or part(place, metrics, "request_totals")
    stats = part(place, doc, "run_stats") or part(place, doc, "scheduler_metrics")
    claimed = part(place, stats, "requests_made")
    made = made or claimed
    totals = {
        "requests": counted,
        "failed": count(place, made, "errored"),
        "incomplete": count(place, made, "incomplete"),
        "duration": number(place, doc, "duration"),
        "prompt_tokens": _sum(place, metrics, "prompt_token_count"),
        "output_tokens": _sum(place, metrics, "output_token_count"),
        "requests_per_second": _mean(place, metrics, "requests_per_second"),
        "output_tokens_per_second": _mean(place, metrics, "output_tokens_per_second"),
        "concurrency": _mean(place, metrics, "request_concurrency"),
    }
    notes = []
    said = count(place, claimed, "successful")
    if abs(said - counted) > 0:
        notes.append(
            f"Requests that succeeded: {said:,.0f} by the report, {counted:,.0f} by its latencies. One is wrong"
        )
    if totals["incomplete"] > 0:
        notes.append(f"Requests cut off at the end of the run, and in no average: {totals['incomplete']:,.0f}")
    speed = _good(place, metrics, "requests_per_second")
    if speed.get("count") and rate(place, speed, "std_dev") > totals["requests_per_second"]:
        notes.append("Its spread of requests/s is of the gaps between single answers, so no rate of the run: left out")
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


def _table(place: str, doc: Mapping, counted: float) -> tuple[Requests | None, list[str]]:
    """The requests of all statuses; None where the report keeps none, or a sample of those that it counted."""
    kept = part(place, doc, "requests")
    rows = []
    for status in ("successful", "errored"):
        for i, value in enumerate(items(f"{place}, requests", kept, status) or []):
            rows.append(_row(f"{place}, {status} request {i}", value, status != "successful"))
    if not rows:
        return None, []
    failed, start, prompt, output, ttft, e2e = (np.array(column) for column in zip(*rows, strict=True))
    failed = failed.astype(bool)
    if (~failed).sum() < counted:
        return None, [f"The report keeps {(~failed).sum():,} of the {counted:,.0f} requests that it counted: no table"]
    return requests_of(failed, start - start.min(), prompt, output, ttft, e2e), []


def _row(place: str, value: Any, failed: bool) -> tuple:
    """Failed, start, prompt and output tokens, TTFT and E2E; times of either version's keys."""
    row = mapping(place, value)
    timings = part(place, part(place, row, "info"), "timings")

    def moment(key: str, old: str) -> float:
        found = number(place, timings, key)
        return number(place, row, old) if np.isnan(found) else found

    start, end = moment("request_start", "start_time"), moment("request_end", "end_time")
    first, last = moment("first_token_iteration", "first_token_time"), moment("last_token_iteration", "last_token_time")
    if np.isnan(start):
        raise ValueError(f"{place}: no time at which it was sent")
    last = end if np.isnan(last) else last
    prompt, output = tokens(place, row, "prompt_tokens"), tokens(place, row, "output_tokens")
    if failed or not output > 0:
        return True, start, prompt, output, NAN, NAN
    for name, late in (("its first token", first), ("its last token", last)):
        if not start <= late <= start + 1e6 and not np.isnan(late):
            raise ValueError(
                f"{place}: {name} is {late - start:.6g} s after it was sent. Are these times of one clock?"
            )
    return False, start, prompt, output, first - start, last - start
