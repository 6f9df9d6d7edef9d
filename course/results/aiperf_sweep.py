"""aiperf's sweep_aggregate/profile_export_aiperf_sweep.json: one block of metrics for each combination of parameters.

    {"aggregation_type": "sweep", "per_combination_metrics": [{"parameters": {"concurrency": 10}, "metrics":
     {"time_to_first_token_p99": {"mean": 120.5, "std": 8.1, ..., "unit": "ms"}, ...}}, ...]}

With several trials a metric's name ends with its statistic, and `mean` is that of the trials. With one trial the name
is the metric's own, and the percentiles stand beside the mean.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course.base.settings import quote
from course.results.aiperf import E2E, ITL, MEANINGS, SECONDS, TOOL, TPOT, TTFT
from course.results.assemble import Draft, Statistics, finish
from course.results.documents import Document
from course.results.result import Result
from course.results.rows import items, mapping, number, part, seconds, setting, statistic, without_missing

TIMES = {TTFT: "ttft", TPOT: "tpot", ITL: "itl", E2E: "e2e"}
RATES = {
    "request_throughput": "requests_per_second",
    "output_token_throughput": "output_tokens_per_second",
    "request_count": "requests",
    "error_request_count": "failed",
    "output_sequence_length": "mean_output_tokens",
    "input_sequence_length": "mean_prompt_tokens",
}
LOADS = {"concurrency": "max_concurrency", "request_rate": "requested_rate", "rate": "requested_rate"}


def matches(value: Any) -> bool:
    """Whether a document is of this kind."""
    return isinstance(value, dict) and "per_combination_metrics" in value


def read(path: Path, documents: list[Document]) -> list[Result]:
    """A result for each combination, in the order of the file."""
    results = []
    for document in documents:
        place = document.place(path)
        doc = mapping(place, document.value)
        lost = items(place, doc, "failed_runs") or []
        notes = [f"{len(lost):,} runs of the sweep failed and are in no average"] if lost else []
        rows = items(place, doc, "per_combination_metrics") or []
        for i, value in enumerate(rows):
            here = f"{place}, combination {i}"
            name = path.stem if len(rows) == 1 else f"{path.stem}:{i}"
            results.append(_combination(here, name, mapping(here, value), notes))
    if not results:
        raise ValueError(f"{path.name} has no combinations")
    return results


def _combination(place: str, name: str, doc: Mapping, notes: list[str]) -> Result:
    parameters, metrics = part(place, doc, "parameters"), part(place, doc, "metrics")
    reported: Statistics = {}
    totals: dict[str, float] = {}
    for key in metrics:
        here = f"{place}, {key}"
        block = part(place, metrics, key)
        metric, single = _metric_of(key)
        if metric in TIMES:
            scale = _scale(here, block)
            stats = reported.setdefault(TIMES[metric], {})
            for entry in ("mean", *(one for one in block if single is None and one.startswith("p"))):
                label = single or statistic(entry)
                if label is not None:
                    stats |= without_missing({label: seconds(here, block, entry, scale)})
        elif metric in RATES and single in (None, "mean"):
            totals |= without_missing({RATES[metric]: number(here, block, "mean")})
    for key, value in parameters.items():
        load = LOADS.get(key.rsplit(".", 1)[-1])
        if load is not None:
            totals |= without_missing({load: setting({"value": value}, "value")})
    setup = {
        key: value for key, value in parameters.items()
        if key.rsplit(".", 1)[-1] not in LOADS and isinstance(value, str | int | float)
    }  # fmt: skip
    return finish(Draft(TOOL, name, MEANINGS, None, reported, {}, totals, setup, {}, list(notes)))


def _metric_of(key: str) -> tuple[str, str | None]:
    """(metric, statistic) of a name such as time_to_first_token_p99; the statistic None if the name has none."""
    if key in TIMES or key in RATES:
        return key, None
    metric, _, last = key.rpartition("_")
    return metric, statistic(last)


def _scale(place: str, block: Mapping) -> float:
    unit = block.get("unit", "ms")
    if not isinstance(unit, str) or unit not in SECONDS:
        raise ValueError(f"{place}: its unit is {quote(unit)}, not one of {', '.join(SECONDS)}")
    return SECONDS[unit]
