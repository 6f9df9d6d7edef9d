"""`vllm bench serve` (and benchmark_serving.py before it) with --save-result or --save-detailed, and its sweeps.

`vllm bench sweep serve` leaves a summary.json, a list of such runs, and a summary.csv with a row for each.

    {"model_id": "...", "num_prompts": 500, "request_rate": "inf", "max_concurrency": 128, "duration": 61.2,
     "completed": 500, "total_output_tokens": 407356, "request_throughput": 8.17, "mean_ttft_ms": 795.2, ...}

Summaries are in milliseconds, lists in seconds. request_rate is a number, "inf", or Infinity. Some versions write the
key "request_goodput:" with its colon. Since vLLM 0.30 queue_times and latencies say how long the client held each
request back at --max-concurrency, and how long it then took. A sweep adds run_number and the options that it varied.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from course.engine.metrics import percentiles
from course.results import pieces
from course.results.assemble import Draft, Statistics, each, finish
from course.results.documents import Document
from course.results.lists import table_of, without_empty
from course.results.load import OPEN, loop_of
from course.results.result import Result
from course.results.rows import (
    NAN,
    count,
    flat,
    items,
    mapping,
    number,
    rate,
    seconds,
    setting,
    unread,
    without_missing,
)

TOOL = "vLLM bench serve"
METRICS = {
    "ttft": "ttft",
    "tpot": "tpot",
    "itl": "itl",
    "e2el": "e2e",
    "client_queue_time": "client_wait",
    "e2el_including_client_queue": "e2e_from_plan",
}
KNOWN = (
    *("request_rate", "max_concurrency", "num_prompts", "completed", "duration", "total_input_tokens"),
    *("total_output_tokens", "request_throughput", "output_throughput", "total_token_throughput"),
)
"""What every file has, and what says how the load was made."""
MEANINGS = {
    "ttft": ("request sent to the first piece of the answer", True),
    "tpot": ("(latency - TTFT) / (tokens - 1), mean over requests", True),
    "itl": ("gaps between pieces of the answers, mean over all of them: long answers count more than in TPOT", True),
    "e2e": ("request sent to the last piece of the answer", True),
    "client_wait": ("planned to sent: the wait for --max-concurrency, in the client", True),
    "ttft_from_plan": ("client_wait + TTFT", True),
    "e2e_from_plan": ("client_wait + E2E", True),
}
LATE = 1e-3  # seconds: what a client without a limit takes to get a request out of the door is no delay
LACKS = "--percentile-metrics ttft,tpot,itl,e2el adds it"
SETUP = ("model_id", "endpoint_type", "backend", "num_prompts", "request_rate", "burstiness", "max_concurrency", "date")


def matches(value: Any) -> bool:
    """Whether a document is a run of this tool; asked after SGLang, whose keys are alike."""
    return isinstance(value, dict) and {"duration", "completed"} <= set(value) and "request_throughput" in value


def read(path: Path, documents: list[Document]) -> list[Result]:
    """Every run in the file: --append-result writes one a line."""
    return each(path, documents, _run)


def _run(path: Path, document: Document, name: str) -> Result:
    place = document.place(path)
    doc = mapping(place, document.value)
    table, notes = table_of(place, doc)
    totals = totals_of(place, doc)
    completed, requests = totals.get("requests", float("nan")), count(place, doc, "num_prompts")
    if "failed" not in totals and requests >= completed:
        totals["failed"] = requests - completed
    for key in ("request_goodput", "request_goodput:"):
        totals |= without_missing({"goodput": rate(place, doc, key)})
    reported = flat(place, doc, METRICS) if completed != 0 else {}  # of no request the tool writes means of 0
    totals, reported, sentences = without_empty(table, totals, reported)
    notes += [*sentences, *unread(doc, METRICS, KNOWN)]
    setup = {key: doc[key] for key in SETUP if isinstance(doc.get(key), str | int | float)} | varied_options(doc)
    drafted = number(place, doc, "spec_decode_acceptance_length")
    prompts = totals.get("requests", float("nan")) + totals.get("failed", 0.0)
    loop = loop_of(totals, is_unlimited(doc), prompts)
    values: Statistics = {}
    if table is None:
        reported = _lists_alone(place, doc, totals) | reported
        values, sentences = pieces.e2e_of(reported, totals, drafted, LACKS)
        notes += sentences
    wait = reported.get("client_wait", {}).get("mean", NAN)
    if table is not None and table.client_wait is not None:
        wait = float(np.nanmean(table.client_wait)) if np.isfinite(table.client_wait).any() else NAN
        table = table if loop == OPEN else replace(table, client_wait=None)
    more, sentences = from_plan(reported | values, totals, loop, wait, table is not None)
    notes += sentences
    return finish(Draft(TOOL, name, MEANINGS, table, reported, values | more, totals, setup, {}, notes, loop, drafted))


def _lists_alone(place: str, doc: Mapping, totals: Mapping[str, float]) -> Statistics:
    """Statistics of the lists that vLLM 0.30 writes without --save-detailed, if every request was answered."""
    metrics = {}
    for metric, key in (("e2e", "latencies"), ("client_wait", "queue_times")):
        values = items(place, doc, key)
        if values and len(values) == totals.get("requests"):
            metrics[metric] = percentiles(np.array([seconds(f"{place}, {key} {i}", {key: value}, key)
                                                  for i, value in enumerate(values)]))  # fmt: skip
    return metrics


def is_unlimited(doc: Mapping) -> bool:
    """Whether the file says that all requests were sent at once, which the tools write as inf or Infinity."""
    return str(doc.get("request_rate")).lower() in ("inf", "infinity")


def varied_options(doc: Mapping) -> dict[str, Any]:
    """The options that a sweep varied: what it adds after the run number."""
    keys = list(doc)
    if "run_number" not in doc:
        return {}
    added = keys[keys.index("run_number") :]
    return {
        key: doc[key] for key in added if isinstance(doc[key], str | int | float) and not isinstance(doc[key], bool)
    }


def from_plan(
    means: Statistics, totals: Mapping[str, float], loop: str, wait: float, listed: bool
) -> tuple[Statistics, list[str]]:
    """Means of TTFT and E2E from the planned moment, if the client held requests back for `wait` seconds on average.

    If no rate was asked for there was no plan: all of them were due at once, and the wait is the test's own making.
    listed: there is a table, which has them request by request.
    """
    if not wait > 0:
        return {}, []
    if loop != OPEN:
        return {}, [
            f"Requests waited {wait:.4g} s on average in the client. No rate was asked for, so all were due at once "
            "and nobody planned that wait"
        ]
    more: Statistics = {}
    for name in () if listed else ("ttft", "e2e"):
        mean = means.get(name, {}).get("mean", NAN) + wait
        if f"{name}_from_plan" not in means and mean > 0:
            more[f"{name}_from_plan"] = {"mean": mean}
    limit = totals.get("max_concurrency", NAN)
    if limit > 0:
        why = f"at its limit of {limit:,.0f} in flight: users would have waited for TTFT and E2E from the plan"
        return more, [f"The client held requests back for {wait:.4g} s on average {why}"]
    if wait < LATE:
        return more, []
    return more, [f"The client sent requests {wait:.4g} s late on average, without a limit in flight: it was too busy"]


def totals_of(place: str, doc: Mapping) -> dict[str, float]:
    """Counts, seconds and rates, which SGLang writes under the same keys."""
    return without_missing(
        {
            "requests": count(place, doc, "completed"),
            "failed": count(place, doc, "failed"),
            "duration": seconds(place, doc, "duration"),
            "prompt_tokens": count(place, doc, "total_input_tokens"),
            "output_tokens": count(place, doc, "total_output_tokens"),
            "requests_per_second": rate(place, doc, "request_throughput"),
            "output_tokens_per_second": rate(place, doc, "output_throughput"),
            "total_tokens_per_second": rate(place, doc, "total_token_throughput"),
            "requested_rate": setting(doc, "request_rate"),
            "max_concurrency": setting(doc, "max_concurrency"),
            "peak_in_flight": count(place, doc, "max_concurrent_requests"),
        }
    )
