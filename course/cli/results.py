"""`course results`: result files of benchmark tools side by side, in the same words."""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from course.results import Result

COUNTS = (
    ("requests answered", "", "requests"),
    ("requests failed", "", "failed"),
    ("duration", "s", "duration"),
    ("requests asked for", "1/s", "requested_rate"),
    ("requests sent", "1/s", "offered_rate"),
    ("requests answered", "1/s", "requests_per_second"),
    ("output tokens", "1/s", "output_tokens_per_second"),
    ("in flight, mean", "", "in_flight"),
    ("in flight, at most", "", "max_concurrency"),
)
WORDS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E", "queue_wait": "queue wait"}
STATISTICS = ("mean", "p50", "p90", "p99", "max")


def results(
    files: Annotated[list[Path], typer.Argument(help="Result files, of any of the tools.")],
    format: Annotated[
        str | None,
        typer.Option(help="The tool of all the files, such as vllm or guidellm.  [default: told by their content]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table; times in seconds.")] = False,
) -> None:
    """What benchmark tools measured, side by side: every metric under one definition, and what to know of it.

    Read are vLLM bench serve, SGLang bench_serving, inference-perf, guidellm, llmperf, aiperf, genai-perf, and the
    request logs of LLMServingSim. A file with several runs has a column each.

    \b
    course results before.json after.json
    course results sglang.jsonl --json
    """
    from course import results as readers
    from course.cli.build import spoken_in_flags

    with spoken_in_flags({"format": format}):
        runs = [run for file in files for run in readers.read_all(file, format)]
    typer.echo(_as_json(runs) if as_json else _as_table(runs))


def _as_json(runs: Sequence["Result"]) -> str:
    """Everything but the tables of requests; what is no number is null."""
    found = [
        {
            "tool": run.tool,
            "name": run.name,
            "setup": dict(run.setup),
            "totals": dict(run.totals),
            "per_request": run.requests is not None,
            "summary": run.summary,
            "ours": run.ours,
            "definitions": {
                name: {"tool": d.tool, "ours": d.ours, "same": d.same} for name, d in run.definitions.items()
            },
            "notes": list(run.notes),
        }
        for run in runs
    ]
    return json.dumps(_finite(found), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _as_table(runs: Sequence["Result"]) -> str:
    """One row a number and one column a run; then what the tools mean by their words, and the notes."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("")
    table.add_column("unit", style="dim")
    for run in runs:
        table.add_column(Text(f"{run.tool}\n{_one_line(run.name)}"), justify="right")
    for label, unit, key in COUNTS:
        _row(table, label, unit, [run.totals.get(key) for run in runs])
    for metric, word in WORDS.items():
        table.add_section()
        _times(table, word, [run.ours.get(metric, {}) for run in runs])
        own = [
            run.summary.get(metric, {}) if metric in run.definitions and not run.definitions[metric].same else {}
            for run in runs
        ]
        _times(table, f"{word} as the tool has it,", own)

    terminal = sys.stdout.isatty()
    out = io.StringIO()
    width = None if terminal else 60 + 40 * len(runs)  # in a pipe there is no width, and a cut-off name helps nobody
    console = Console(file=out, force_terminal=terminal, width=width, highlight=False)
    console.print(table)
    for line in _sentences(runs):
        console.print(Text(line), soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _times(table: Any, word: str, columns: Sequence[Mapping[str, float]]) -> None:
    """The statistics that some run has, all in one unit."""
    largest = max((value for column in columns for value in column.values()), default=0)
    unit, scale = ("s", 1) if largest >= 10 else ("ms", 1_000)
    for statistic in STATISTICS:
        values = [column.get(statistic) for column in columns]
        _row(table, f"{word} {statistic}", unit, [None if value is None else scale * value for value in values])


def _row(table: Any, label: str, unit: str, values: Sequence[float | None]) -> None:
    if any(value is not None for value in values):
        table.add_row(label, unit, *["-" if value is None else _number(value) for value in values])


def _number(value: float) -> str:
    """Four digits that count, and all of a whole number."""
    if float(value).is_integer() or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.2e}"


def _sentences(runs: Sequence["Result"]) -> list[str]:
    lines = ["", "Every number is under the definitions of the glossary, except in rows as a tool has it:"]
    seen = []
    for run in runs:
        for metric, definition in run.definitions.items():
            line = f"- {run.tool}, {WORDS[metric]}: {definition.tool}"
            if not definition.same and line not in seen:
                seen.append(line)
    lines = [*lines, *seen] if seen else []
    for run in runs:
        lines += ["", f"{_one_line(run.name)} ({run.tool})", *[f"- {note}" for note in run.notes]]
    return lines


def _one_line(name: str) -> str:
    """A file's name may hold anything: what no terminal prints is shown as Python writes it."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)
