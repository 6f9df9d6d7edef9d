"""llmperf: *_individual_responses.json, a list with one object a request, and *_summary.json, flat keys in seconds.

    [{"error_code": null, "ttft_s": 0.89, "end_to_end_latency_s": 4.48, "inter_token_latency_s": 0.029,
      "number_output_tokens": 151, "number_input_tokens": 550, ...}, ...]
    {"num_concurrent_requests": 5, "results_ttft_s_mean": 0.51, "results_ttft_s_quantiles_p50": 0.52,
     "results_number_input_tokens_min": "550", ...}

Its inter-token latency is the sum of all waits of a request, the first included, over its tokens. Tokens are counted by
a tokeniser of its own, not the model's. Minima and maxima of counts are text.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from course.base.textfiles import finite
from course.engine.metrics import percentiles
from course.results.assemble import Draft, finish, tpot_of
from course.results.documents import Document
from course.results.result import Requests, Result
from course.results.rows import (
    NAN,
    count,
    mapping,
    number,
    numeric,
    rate,
    seconds,
    setting,
    statistic,
    tokens,
    without_missing,
)

TOOL = "llmperf"
KEYS = {"ttft": "ttft_s", "itl": "inter_token_latency_s", "e2e": "end_to_end_latency_s"}
MEANINGS = {
    "ttft": ("request sent to the first piece of the answer", True),
    "itl": ("(TTFT + all later waits) / tokens, one value a request: near E2E / tokens", False),
    "e2e": ("request sent to the last piece of the answer", True),
}
OWN_COUNT = "Tokens are counted by llmperf's own tokeniser (Llama's), whatever the model"


def matches(value: Any) -> bool:
    """Whether a document is of this tool: a list of responses, or a summary."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], dict) and "end_to_end_latency_s" in value[0]
    return isinstance(value, dict) and any(str(key).startswith("results_ttft_s") for key in value)


def read(path: Path, documents: list[Document]) -> list[Result]:
    """The run of a list, or of a summary."""
    return [
        _individual(path, document) if isinstance(document.value, list) else _summary(path, document)
        for document in documents
    ]


def _individual(path: Path, document: Document) -> Result:
    rows = []
    own = []
    for i, value in enumerate(document.value):
        place = f"{document.place(path)}, request {i}"
        row = mapping(place, value)
        failed = row.get("error_code") is not None
        times = {name: NAN if failed else seconds(place, row, key) for name, key in KEYS.items()}
        prompt, output = tokens(place, row, "number_input_tokens"), tokens(place, row, "number_output_tokens")
        failed = failed or output == 0
        own.append(NAN if failed else times["itl"])
        rows.append((failed, prompt, output, *(NAN if failed else times[name] for name in ("ttft", "e2e"))))
    table, mean_gap = _table(rows)
    reported = {"itl": percentiles(np.array(own))} if np.isfinite(own).any() else {}
    values = {"itl": without_missing({"mean": mean_gap})}
    notes = ["There are no arrival times in this file, so the run cannot be replayed", OWN_COUNT]
    reported |= {name: stats for name, stats in table.summary().items() if name in ("ttft", "e2e")}
    return finish(Draft(TOOL, path.stem, MEANINGS, table, reported, values, {}, {}, {}, notes))


def _table(rows: list[tuple]) -> tuple[Requests, float]:
    """The requests, and the mean of all gaps between tokens [s]: decode seconds over gaps, all answers together."""
    failed, prompt, output, ttft, e2e = (np.array(column) for column in zip(*rows, strict=True))
    failed = failed.astype(bool)
    missing = np.full(len(failed), NAN)
    table = Requests(missing, prompt, output, ttft, tpot_of(ttft, e2e, output), e2e, missing.copy(), failed)
    some = np.isfinite(table.tpot)
    gaps = (output[some] - 1).sum()
    return table, float((e2e - ttft)[some].sum() / gaps) if gaps > 0 else NAN


def _summary(path: Path, document: Document) -> Result:
    place = document.place(path)
    doc = numeric(mapping(place, document.value))
    reported = {name: _statistics(place, doc, f"results_{key}_") for name, key in KEYS.items()}
    reported = {name: stats for name, stats in reported.items() if stats}
    per_minute = rate(place, doc, "results_num_completed_requests_per_min")
    completed = count(place, doc, "results_num_completed_requests")
    totals = without_missing(
        {
            "requests": completed,
            "failed": count(place, doc, "results_number_errors"),
            "requests_per_second": per_minute / 60,
            "output_tokens_per_second": rate(place, doc, "results_mean_output_throughput_token_per_s"),
            "mean_prompt_tokens": rate(place, doc, "results_number_input_tokens_mean"),
            "mean_output_tokens": rate(place, doc, "results_number_output_tokens_mean"),
            "max_concurrency": setting(doc, "num_concurrent_requests"),
            "asked_prompt_tokens": setting(doc, "mean_input_tokens"),
            "asked_output_tokens": setting(doc, "mean_output_tokens"),
        }
    )
    if per_minute > 0:
        totals |= without_missing({"duration": completed / per_minute * 60})
    values = {}
    each = totals.get("mean_output_tokens", NAN)
    first, whole = (reported.get(name, {}).get("mean", NAN) for name in ("ttft", "e2e"))
    if each > 1:
        values["tpot"] = without_missing({"mean": (whole - first) / (each - 1)})
    notes = ["TPOT is from the means of E2E, TTFT and tokens: the mean over requests differs with unequal answers"]
    notes = (notes if values.get("tpot") else []) + [OWN_COUNT, *_unread(doc)]
    setup = {key: doc[key] for key in ("model", "framework", "timestamp") if isinstance(doc.get(key), str | int)}
    return finish(Draft(TOOL, path.stem, MEANINGS, None, reported, values, totals, setup, {}, notes))


def _unread(doc: Mapping) -> list[str]:
    """A sentence for each number of a metric whose statistic or unit is not known."""
    metrics = [f"results_{key}_" for key in KEYS.values()]
    return [
        f"{key} looks like a metric, and is not read: its statistic or its unit is not known"
        for key, value in doc.items()
        for prefix in metrics
        if finite(value) and key.startswith(prefix) and statistic(_name(key, prefix)) is None
    ]


def _name(key: str, prefix: str) -> str:
    return key.removeprefix(prefix).removeprefix("quantiles_")


def _statistics(place: str, doc: Mapping, prefix: str) -> dict[str, float]:
    numbers = {}
    for key in doc:
        name = statistic(_name(key, prefix)) if key.startswith(prefix) else None
        if name is not None:
            numbers[name] = number(place, doc, key)
    return without_missing(numbers)
