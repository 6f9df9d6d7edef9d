"""What `course simulate` prints: a table for people, JSON for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import floor, isfinite, isnan, log10
from typing import Any

from course.cli import groups
from course.cli.output import json_text, new_table, one_line, tables_text
from course.engine.metrics import percentiles
from course.engine.run import Run
from course.memory.kvcache import KVCache
from course.steptime import StepTimeModel
from course.workload import Workload


@dataclass(frozen=True)
class Result:
    """One policy's run in numbers."""

    name: str
    policy: str
    summary: Mapping[str, float]
    warnings: Sequence[str]
    classes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by class of request, in seconds
    groups: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of --group-by, in seconds


@dataclass(frozen=True)
class Setup:
    """What all policies had in common."""

    load: Workload
    step_time: StepTimeModel
    cache: KVCache | None
    slos: Mapping[str, float | None]  # seconds
    options: Mapping[str, Any]
    warnings: Sequence[str]
    memory: str = ""  # where the KV blocks come from


TIMES = {
    "TTFT": ("ttft", ("mean", "p50", "p95", "p99")),
    "TPOT": ("tpot", ("mean", "p50", "p95", "p99")),
    "ITL": ("itl", ("p50", "p99", "max")),
    "E2E": ("e2e", ("mean", "p50", "p95", "p99")),
    "queue wait": ("queue_wait", ("mean", "p95")),
    "client wait": ("client_wait", ("mean", "p95")),
}
RATES = (
    ("throughput", "requests/s", "requests_per_second"),
    ("throughput", "output tokens/s", "output_tokens_per_second"),
    ("goodput", "requests/s", "goodput"),
)
USE = (
    ("makespan", "s", lambda s: s["makespan"]),
    ("steps", "", lambda s: s["steps"]),
    ("mean requests in the system", "", lambda s: s["mean_in_system"]),
    ("slots in use", "%", lambda s: 100 * s["slot_utilisation"]),
    ("slot-steps wasted on padding", "%", lambda s: 100 * _share(s["wasted_slot_steps"], s["useful_slot_steps"])),
    ("KV blocks in use, peak", "%", lambda s: 100 * s["kv_peak"]),
    ("KV blocks in use, mean", "%", lambda s: 100 * s["kv_mean"]),
    ("preemptions", "", lambda s: s["preemptions"]),
    ("tokens computed again", "", lambda s: s["recomputed_tokens"]),
)


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest else float("nan")


def by_class(run: Run) -> dict[str, dict[str, float]]:
    """Means and percentiles of TTFT, TPOT and E2E [s] of each class of requests; nothing without classes."""
    labels = run.workload.class_
    if labels is None:
        return {}
    return {
        str(name): {
            f"{metric}_{statistic}": percentiles(getattr(run, metric)[labels == name])[statistic]
            for metric in ("ttft", "tpot", "e2e")
            for statistic in ("mean", "p50", "p95", "p99")
        }
        for name in dict.fromkeys(labels.tolist())
    }


def as_json(setup: Setup, results: Sequence[Result]) -> str:
    """The results as JSON, times in seconds; what is no number (NaN, infinity) is null."""
    from importlib.metadata import version

    content = {
        "course": version("llm-batching-course"),
        "workload": {"name": setup.load.name, "notes": list(setup.load.notes), **setup.load.describe()},
        "step_time": {"source": setup.step_time.source, "model": repr(setup.step_time)},
        "kv_cache": None
        if setup.cache is None
        else {"num_blocks": setup.cache.num_blocks, "block_size": setup.cache.block_size},
        "kv_cache_from": setup.memory,
        "slo_seconds": dict(setup.slos),
        "settings": {name: value if value is None else _plain(value) for name, value in setup.options.items()},
        "warnings": list(setup.warnings),
        "runs": [
            {
                "name": r.name,
                "policy": r.policy,
                "summary": dict(r.summary),
                **({"classes": {name: dict(numbers) for name, numbers in r.classes.items()}} if r.classes else {}),
                **({"groups": {name: dict(numbers) for name, numbers in r.groups.items()}} if r.groups else {}),
                "warnings": list(r.warnings),
            }
            for r in results
        ],
    }
    return json_text(content)


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | list) else str(value)


def as_table(setup: Setup, results: Sequence[Result]) -> str:
    """The set-up in a few lines, then one row a metric and one column a policy."""
    table = new_table("", "unit")
    for result in results:
        table.add_column(result.name, justify="right", no_wrap=True)
    summaries = [result.summary for result in results]
    for label, unit, key in RATES:
        if key != "goodput" or any(slo is not None for slo in setup.slos.values()):
            table.add_row(label, unit, *_cells([s[key] for s in summaries]))
    table.add_section()
    for label, (metric, statistics) in TIMES.items():
        if f"{metric}_mean" not in summaries[0]:
            continue
        rows = [[s[f"{metric}_{statistic}"] for s in summaries] for statistic in statistics]
        unit, scale = ("s", 1) if max(filter(isfinite, chain(*rows)), default=0) >= 1 else ("ms", 1_000)
        rows = [[scale * value for value in row] for row in rows]
        decimals = _decimals([*chain(*rows)])
        for statistic, row in zip(statistics, rows, strict=True):
            table.add_row(f"{label} {statistic}", unit, *_cells(row, decimals))
        table.add_section()
    for name in results[0].classes:
        for label, (metric, _) in list(TIMES.items())[:2]:
            values = [1_000 * result.classes[name][f"{metric}_p95"] for result in results]
            table.add_row(f"{label} p95, {one_line(name)}", "ms", *_cells(values, _decimals(values)))
    if results[0].classes:
        table.add_section()
    for label, unit, value in USE:
        values = [value(s) for s in summaries]
        if not all(isnan(v) for v in values):
            table.add_row(label, unit, *_cells(values))

    parts = [*_heading(setup), "", table, ""]
    if any(result.groups for result in results):
        parts += [groups.table([(result.name, result.groups) for result in results]), ""]
    at_once = [result.name for result in results if result.name in ("static", "dynamic")]
    if at_once:
        verb = "answers" if len(at_once) == 1 else "answer"
        parts.append(f"{' and '.join(at_once)} {verb} when the whole batch is done: TTFT is E2E, and no tokens stream.")
    return tables_text(200, *parts)


def _heading(setup: Setup) -> list[str]:
    d = setup.load.describe()
    arriving = f" in {d['span_s']:,.1f} s, {d['rps']:.4g}/s" if d["span_s"] > 0 else ", all at once"
    spread = "" if isnan(d["gap_cv_population"]) else f", gaps with CV {d['gap_cv_population']:.2f}"
    lengths = (
        f"{side} mean {d[f'{key}_mean']:,.0f}, p99 {d[f'{key}_p99']:,.0f}"
        for side, key in (("prompt", "in"), ("output", "out"))
    )
    memory = "unlimited"
    if setup.cache is not None:
        memory = f"{setup.cache.num_blocks:,} blocks of {setup.cache.block_size} tokens"
    memory += f" ({setup.memory})" if setup.memory else ""
    lines = [
        f"{one_line(setup.load.name)}: {d['n']:,} requests{arriving}{spread}",
        f"Tokens: {'; '.join(lengths)}",
        f"Step times: {setup.step_time.source}, {setup.step_time!r}. KV memory: {memory}",
    ]
    slos = [f"{name.upper()} at most {1_000 * slo:g} ms" for name, slo in setup.slos.items() if slo is not None]
    return [*lines, f"Goodput: {' and '.join(slos)}"] if slos else lines


def _decimals(values: Sequence[float]) -> int:
    """Decimals that leave the smallest value two digits that count and the largest three; at most three decimals."""
    sizes = [abs(value) for value in values if isfinite(value) and value != 0]
    if not sizes or all(size.is_integer() for size in map(float, sizes)):
        return 0
    return min(3, max(0, 1 - floor(log10(min(sizes))), 2 - floor(log10(max(sizes)))))


def _cells(values: Sequence[float], decimals: int | None = None) -> list[str]:
    decimals = _decimals(values) if decimals is None else decimals
    return ["-" if isnan(value) else f"{value:,.{decimals}f}" for value in values]
