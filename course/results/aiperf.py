"""aiperf: profile_export_aiperf.json, a block of statistics a metric, and profile_export.jsonl, one object a request.

    {"schema_version": "1.1", "time_to_first_token": {"unit": "ms", "avg": 50.1, "p50": 48.0, "p99": 80.2}, ...}
    {"metadata": {"request_start_ns": 1759813207532900363, "benchmark_phase": "profiling", ...},
     "metrics": {"time_to_first_token": {"value": 255.9, "unit": "ms"}, ...}, "error": null}

Every value has its unit beside it. Its inter-token latency is what is called TPOT here; the gaps themselves are
inter_chunk_latency.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from course.base.settings import quote
from course.results.assemble import Draft, Statistics, finish, requests_of
from course.results.documents import Document
from course.results.result import Result
from course.results.rows import (
    NAN,
    items,
    mapping,
    number,
    numeric,
    part,
    seconds,
    setting,
    statistics,
    tokens,
    without_missing,
)

TOOL = "aiperf"
TTFT, TPOT, ITL, E2E = "time_to_first_token", "inter_token_latency", "inter_chunk_latency", "request_latency"
MEANINGS = {
    "ttft": ("request sent to the first piece with content", True),
    "tpot": ("inter_token_latency: (latency - TTFT) / (tokens - 1), one value a request", True),
    "itl": ("inter_chunk_latency: gaps between pieces of the answer", True),
    "e2e": ("request sent to the last piece of the answer", True),
}
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
TOTALS = {
    "requests": "request_count",
    "failed": "error_request_count",
    "duration": "benchmark_duration",
    "prompt_tokens": "total_isl",
    "output_tokens": "total_osl",
    "requests_per_second": "request_throughput",
    "output_tokens_per_second": "output_token_throughput",
    "goodput": "goodput",
    "mean_prompt_tokens": "input_sequence_length",
    "mean_output_tokens": "output_sequence_length",
}


def matches(value: Any) -> bool:
    """Whether a document is of this tool: a row with its metadata, or a summary that says so."""
    if not isinstance(value, dict):
        return False
    if {"metadata", "metrics"} <= set(value):
        return isinstance(value["metadata"], dict) and "request_start_ns" in value["metadata"]
    return E2E in value and ("aiperf_version" in value or "schema_version" in value or "request_count" in value)


def read(path: Path, documents: list[Document]) -> list[Result]:
    """The run of a summary, or of the rows."""
    if "metrics" in mapping(documents[0].place(path), documents[0].value):
        return [_rows(path, documents)]
    return [_summary(path, document) for document in documents]


def blocks(place: str, doc: Mapping) -> tuple[Statistics, dict[str, float]]:
    """Statistics and totals of a summary of this shape, which genai-perf has too."""
    reported = {}
    for metric, key in (("ttft", TTFT), ("tpot", TPOT), ("itl", ITL), ("e2e", E2E)):
        block = numeric(part(place, doc, key))
        numbers = statistics(f"{place}, {key}", block, _scale(f"{place}, {key}", block)) if block else {}
        if numbers:
            reported[metric] = numbers
    totals = {}
    for name, key in TOTALS.items():
        block = numeric(part(place, doc, key))
        scale = _scale(f"{place}, {key}", block) if name == "duration" and block else 1.0
        totals[name] = number(f"{place}, {key}", block, "avg") * scale
        if totals[name] < 0:
            raise ValueError(f"{place}: {key} is {quote(block['avg'])}: it cannot be negative")
    return reported, without_missing(totals)


def _scale(place: str, block: Mapping) -> float:
    """Seconds in the block's unit."""
    unit = block.get("unit")
    if not isinstance(unit, str) or unit not in SECONDS:
        raise ValueError(f"{place}: its unit is {quote(unit)}, not one of {', '.join(SECONDS)}")
    return SECONDS[unit]


def load_of(place: str, doc: Mapping) -> tuple[dict[str, float], list[str]]:
    """The load and the lengths that were asked for, wherever a version of the tool keeps them, and sentences.

    Schema 1.0 to 1.2 has loadgen and input.prompt; 1.3 has phases and datasets; genai-perf has both flat.
    """
    config = doc.get("input_config")
    config = config if isinstance(config, dict) else {}
    load: dict[str, float] = {}
    for holder in (config, config.get("loadgen"), *_phases(config.get("phases"))):
        if isinstance(holder, dict):
            for name, keys in (("max_concurrency", ("concurrency",)), ("requested_rate", ("request_rate", "rate"))):
                for key in keys:
                    load |= without_missing({name: setting(holder, key)})
    load |= _lengths(config)
    notes = []
    count = number(f"{place}, osl_mismatch_count", numeric(part(place, doc, "osl_mismatch_count")), "avg")
    off = number(f"{place}, osl_mismatch_diff_pct", numeric(part(place, doc, "osl_mismatch_diff_pct")), "avg")
    if count > 0 and abs(off) > 0:
        less = "shorter" if off < 0 else "longer"
        notes.append(
            f"{count:,.0f} answers missed the requested length; answers are {abs(off):.3g}% {less} than asked "
            "on average"
        )
    return load, notes


def _phases(phases: Any) -> list[Mapping]:
    """The phases that count: a list, or an object by name; a warm-up is not measured."""
    named = phases.items() if isinstance(phases, dict) else ((None, phase) for phase in phases or ())
    return [
        phase
        for name, phase in (named if isinstance(phases, list | dict) else ())
        if isinstance(phase, dict)
        and phase.get("exclude_from_results") is not True
        and (phase.get("kind") or phase.get("name") or name) != "warmup"
    ]


def _lengths(config: Mapping) -> dict[str, float]:
    """Mean tokens of prompts and answers that were asked for; empty if they came from a file."""
    datasets = config.get("datasets")
    if isinstance(datasets, dict):
        datasets = list(datasets.values())
    holders = datasets if isinstance(datasets, list) else []
    prompts = [one["prompts"] for one in holders if isinstance(one, dict) and isinstance(one.get("prompts"), dict)]
    lengths: dict[str, float] = {}
    for side, new, old in (("prompt", "isl", "input_tokens"), ("output", "osl", "output_tokens")):
        for one in prompts:
            value = one.get(new)
            lengths |= without_missing(
                {f"asked_{side}_tokens": setting(value if isinstance(value, dict) else {"mean": value}, "mean")}
            )
        prompt = config.get("input")
        prompt = prompt.get("prompt") if isinstance(prompt, dict) else None
        block = prompt.get(old) if isinstance(prompt, dict) else None
        if isinstance(block, dict):
            lengths |= without_missing({f"asked_{side}_tokens": setting(block, "mean")})
    for side, key in (("output", "output_tokens_mean"), ("prompt", "synthetic_input_tokens_mean")):
        lengths |= without_missing({f"asked_{side}_tokens": setting(config, key)})
    return lengths


def _summary(path: Path, document: Document) -> Result:
    place = document.place(path)
    doc = mapping(place, document.value)
    reported, totals = blocks(place, doc)
    load, notes = load_of(place, doc)
    totals |= load
    setup = {key: doc[key] for key in ("aiperf_version", "schema_version") if isinstance(doc.get(key), str)}
    if doc.get("was_cancelled") is True:
        notes.append("The run was cancelled before its end")
    return finish(Draft(TOOL, path.stem, MEANINGS, None, reported, {}, totals, setup, {}, notes))


def _rows(path: Path, documents: list[Document]) -> Result:
    rows: list[tuple] = []
    gaps: list[np.ndarray] = []
    left_out = silent = unphased = 0
    for document in documents:
        place = document.place(path)
        row = mapping(place, document.value)
        meta, metrics = part(place, row, "metadata"), part(place, row, "metrics")
        if meta.get("benchmark_phase") not in (None, "profiling"):
            left_out += 1
            continue
        unphased += "benchmark_phase" not in meta
        failed = row.get("error") is not None or meta.get("was_cancelled") is True
        start = meta.get("request_start_ns")
        if isinstance(start, bool) or not isinstance(start, int) or not 0 <= start < 2**63:
            raise ValueError(f"{place}: request_start_ns is {quote(start)}, which is not a whole number of nanoseconds")
        prompt, output = (_tokens(place, metrics, key) for key in ("input_sequence_length", "output_sequence_length"))
        silent += not failed and np.isnan(output)
        ttft, e2e = (NAN if failed else _time(place, metrics, key) for key in (TTFT, E2E))
        # Nanoseconds since 1970 need more digits than a float64 has: differences are of the integers.
        rows.append((failed or not output > 0, start, prompt, output, ttft, e2e))
        gaps.append(np.empty(0) if failed else _gaps(place, metrics))
    if not rows:
        raise ValueError(f"{path.name} has no request of the measured phase")
    failures, starts, prompts, *numbers = zip(*rows, strict=True)
    without_answer = np.array(failures)
    outputs, ttfts, e2es = (np.where(without_answer, NAN, np.array(values, dtype=float)) for values in numbers)
    arrival = np.array([(moment - min(starts)) / 10**9 for moment in starts])
    table = requests_of(without_answer, arrival, np.array(prompts, dtype=float), outputs, ttfts, e2es, gaps)
    notes = [f"{left_out:,} requests of the warm-up were left out"] if left_out else []
    if unphased:
        notes.append(f"{unphased:,} requests have no benchmark_phase: those of a warm-up are counted with the others")
    if silent:
        notes.append(f"{silent:,} requests have no output_sequence_length.value, and are counted as failed")
    return finish(Draft(TOOL, path.stem, MEANINGS, table, notes=notes))


def _time(place: str, metrics: Mapping, key: str) -> float:
    block = part(place, metrics, key)
    return seconds(f"{place}, {key}", block, "value", _scale(f"{place}, {key}", block)) if block else NAN


def _tokens(place: str, metrics: Mapping, key: str) -> float:
    return tokens(f"{place}, {key}", part(place, metrics, key), "value")


def _gaps(place: str, metrics: Mapping) -> np.ndarray:
    block = part(place, metrics, ITL)
    values = items(f"{place}, {ITL}", block, "value") or []
    scale = _scale(f"{place}, {ITL}", block) if block else 1.0
    here = f"{place}, {ITL}"
    return np.array([seconds(here, {f"gap {k}": value}, f"gap {k}", scale) for k, value in enumerate(values)])
