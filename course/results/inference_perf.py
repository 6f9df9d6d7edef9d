"""inference-perf: stage_N_lifecycle_metrics.json, or summaries from a server's Prometheus histograms; times in seconds.

    {"load_summary": {"count": 60, "requested_rate": 1.0, "achieved_rate": 1.03, "schedule_delay": {...}},
     "successes": {"count": 60, "latency": {"request_latency": {...}, "time_to_first_token": {...}, ...},
                   "throughput": {"requests_per_sec": 1.02, ...}, "prompt_len": {...}, "output_len": {...}},
     "failures": {"count": 0, ...}}

and per_request_lifecycle_metrics.json, a list with start_time, end_time, info and error. Metrics of an answer that was
not streamed are null.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from course.results.assemble import Draft, finish, requests_of
from course.results.documents import Document
from course.results.result import Result
from course.results.rows import (
    NAN,
    count,
    items,
    mapping,
    number,
    part,
    rate,
    seconds,
    setting,
    statistics,
    tokens,
    without_missing,
)

TOOL = "inference-perf"
METRICS = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
    "e2e": "request_latency",
}
MEANINGS = {
    "ttft": ("request sent to the first piece of the answer", True),
    "tpot": ("(last piece - first piece) / (pieces - 1), mean over requests", True),
    "itl": ("gaps between pieces of the answers", True),
    "e2e": ("request sent to the end of the answer", True),
}
AT_SERVER = {
    "ttft": ("the server's own histogram, from its arrival there", True),
    "tpot": ("the server's own histogram of decode time over tokens", True),
    "e2e": ("the server's own histogram, from its arrival there", True),
}
LATE = 0.1  # seconds of delay in sending, on average, that are pointed out


def matches(value: Any) -> bool:
    """Whether a document is of this tool: a stage, or a list of requests."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], dict) and {"start_time", "end_time", "info"} <= set(value[0])
    return isinstance(value, dict) and {"successes", "failures"} <= set(value)


def read(path: Path, documents: list[Document]) -> list[Result]:
    """The run of each document."""
    return [
        _requests(path, document) if isinstance(document.value, list) else _stage(path, document)
        for document in documents
    ]


def _stage(path: Path, document: Document) -> Result:
    place = document.place(path)
    doc = mapping(place, document.value)
    load, good, bad = (part(place, doc, key) for key in ("load_summary", "successes", "failures"))
    at_server = "latency" not in good
    times = good if at_server else part(f"{place}, successes", good, "latency")
    reported = {}
    for metric, key in METRICS.items():
        numbers = statistics(f"{place}, {key}", part(place, times, key))
        if numbers:
            reported[metric] = numbers
    speed = part(place, good, "throughput")
    prompt, output = part(place, good, "prompt_len"), part(place, good, "output_len")
    if at_server:
        rates = [rate(place, block, "rate") for block in (good, output, prompt)]
    else:
        rates = [rate(place, speed, f"{what}_per_sec") for what in ("requests", "output_tokens", "input_tokens")]
    totals = {
        "requests": count(place, good, "count"),
        "failed": count(place, bad, "count"),
        "requests_per_second": rates[0],
        "output_tokens_per_second": rates[1],
        "prompt_tokens_per_second": rates[2],
        "mean_prompt_tokens": rate(place, prompt, "mean"),
        "mean_output_tokens": rate(place, output, "mean"),
        "requested_rate": setting(load, "requested_rate"),
        "offered_rate": rate(place, load, "achieved_rate"),
    }
    notes = []
    late = number(place, part(place, load, "schedule_delay"), "mean")
    nulls = [key for key in METRICS.values() if key in times and times[key] is None]
    if nulls:
        notes.append(f"{', '.join(nulls)} are null: answers were not streamed, so they have no such times")
    if late > LATE:
        notes.append(f"Requests were sent {late:.3g} s late on average, and no latency counts that wait")
    usage, unit = _kv_usage(place, good)
    totals |= usage
    notes += unit
    if at_server:
        notes.append("The times are the server's, from Prometheus: percentiles are read off histogram buckets")
    meanings = AT_SERVER if at_server else MEANINGS
    values = {}
    if not at_server and _of_pieces(reported, totals):
        meanings = meanings | {"tpot": (MEANINGS["tpot"][0], False), "itl": (MEANINGS["itl"][0], False)}
        mean = (reported["e2e"]["mean"] - reported["ttft"]["mean"]) / (totals["mean_output_tokens"] - 1)
        values["tpot"] = {"mean": mean}
        notes.append(
            f"Its TPOT of {1000 * reported['tpot']['mean']:.4g} ms is a time per piece of the stream: (E2E - TTFT) / "
            f"(tokens - 1) of its own means is {1000 * mean:.4g} ms"
        )
    return finish(Draft(TOOL, path.stem, meanings, None, reported, values, without_missing(totals), {}, {}, notes))


def _kv_usage(place: str, good: Mapping) -> tuple[dict[str, float], list[str]]:
    """The KV cache's use as a share. vLLM's gauge goes to 1 under a name that says percent; others go to 100.

    0 throughout was not measured.
    """
    block = part(place, good, "kv_cache_usage_percentage")
    values = {key: rate(f"{place}, kv_cache_usage_percentage", block, key) for key in block}
    top = max((value for value in values.values() if not np.isnan(value)), default=0.0)
    if not 0 < top <= 100:
        return {}, []
    scale = 1 if top <= 1 else 100
    sentence = (
        f"kv_cache_usage_percentage reaches {top:.4g}, so it was read as {'a share' if scale == 1 else 'percent'}"
    )
    return without_missing({"kv_mean": values.get("mean", NAN) / scale}), [sentence]


def _of_pieces(reported: Mapping[str, Mapping[str, float]], totals: Mapping[str, float]) -> bool:
    """Whether its TPOT goes with pieces of the stream and not with tokens."""
    tpot, ttft, e2e = (reported.get(name, {}).get("mean", NAN) for name in ("tpot", "ttft", "e2e"))
    gap = (e2e - ttft) / (totals["mean_output_tokens"] - 1) if totals["mean_output_tokens"] > 1 else NAN
    return bool(tpot > 0 and gap > 1.25 * tpot)


class _Answer(NamedTuple):
    """One request of a list; times in seconds, NaN if there are none."""

    failed: bool
    start: float
    prompt: float
    output: float
    ttft: float
    e2e: float
    gaps: np.ndarray


def _requests(path: Path, document: Document) -> Result:
    answers = [_answer(f"{document.place(path)}, request {i}", value) for i, value in enumerate(document.value)]
    *columns, gaps = zip(*answers, strict=True)
    failed, start, prompt, output, ttft, e2e = (np.array(column) for column in columns)
    failed = failed.astype(bool)
    table = requests_of(failed, start - start.min(), prompt, output, ttft, e2e, list(gaps))
    alone = int((~failed & np.isnan(ttft)).sum())
    notes = [f"{alone:,} answers have no times of their tokens, so they have neither TTFT nor TPOT"] if alone else []
    silent = sum(row.get("error") is None for row, none in zip(document.value, np.isnan(output), strict=True) if none)
    if silent:
        notes.append(f"{silent:,} requests have no output_tokens and no error, and are counted as failed")
    return finish(Draft(TOOL, path.stem, MEANINGS, table, notes=notes))


def _answer(place: str, value: Any) -> _Answer:
    row = mapping(place, value)
    info = part(place, row, "info")
    start, end = number(place, row, "start_time"), number(place, row, "end_time")
    if np.isnan(start):
        raise ValueError(f"{place}: start_time is missing. Without it nobody can say when this request was sent")
    e2e = seconds(place, {"end_time - start_time": end - start}, "end_time - start_time")
    request, response = part(place, info, "request_metrics"), part(place, info, "response_metrics")
    prompt = tokens(place, part(place, request, "text") or info, "input_tokens")
    output = tokens(place, response or info, "output_tokens")
    moments = items(place, response or info, "output_token_times") or []
    times = np.array([number(place, {f"token {k}": moment}, f"token {k}") for k, moment in enumerate(moments)])
    gaps = np.diff(times)
    if (gaps < 0).any() or (times.size and not times[0] >= start):
        raise ValueError(f"{place}: output_token_times run back in time, or begin before the request does")
    if row.get("error") is not None or not output > 0:
        return _Answer(True, start, prompt, output, NAN, NAN, np.empty(0))
    if times.size > 1 or (times.size == 1 and output == 1):  # one piece of many tokens was not streamed
        return _Answer(False, start, prompt, output, float(times[0] - start), float(times[-1] - start), gaps)
    return _Answer(False, start, prompt, output, NAN, e2e, gaps)
