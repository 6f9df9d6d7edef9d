"""`course results`: result files of benchmark tools side by side, in the same words."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from course.cli import groups
from course.cli.output import digits, echo, json_text, new_table, one_line, tables_text

if TYPE_CHECKING:
    from course.results import Result

MOST_COLUMNS = 6  # of runs side by side; more are rows
MOST_ALIKE = 3  # the same for runs of one tool, as of a sweep
LOOPS = {"open": "open loop", "closed": "closed loop", "burst": "all at once", "": "-"}
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
    ("running at the scrape", "", "running"),
    ("waiting at the scrape", "", "waiting"),
    ("KV cache in use", "", "kv_usage"),
    ("preemptions", "", "preemptions"),
)
WORDS = {
    "ttft": "TTFT",
    "tpot": "TPOT",
    "itl": "ITL",
    "e2e": "E2E",
    "queue_wait": "queue wait",
    "client_wait": "wait in the client",
    "ttft_from_plan": "TTFT from plan",
    "e2e_from_plan": "E2E from plan",
}
STATISTICS = ("mean", "p50", "p90", "p99", "max")


def results(
    files: Annotated[list[Path], typer.Argument(help="Result files, of any of the tools.")],
    format: Annotated[
        str | None,
        typer.Option(
            help="The tool that wrote the files, such as vllm or guidellm.  [default: found by their content]"
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(help="Seconds between two scrapes of a metrics page; the pages themselves do not say."),
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(help="Groups of requests by their prompts, prompt:2048,16384, where the file lists requests."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table; times in seconds.")] = False,
) -> None:
    """What benchmark tools measured, side by side: every metric under one definition, and what to know of it.

    Read are vLLM bench serve and its sweeps, SGLang bench_serving, inference-perf, guidellm, llmperf, aiperf,
    genai-perf, trtllm-bench, the request logs of LLMServingSim, pages of Prometheus metrics as vLLM prints them, and
    what `course sweep` has simulated.
    Two pages give what happened between them. Of many runs each has a row, and knee and collapse are named.

    \b
    course results before.json after.json
    course results sweep/summary.json
    course results first.prom second.prom --interval 60
    """
    from course import results as readers
    from course.cli.build import spoken_in_flags

    with spoken_in_flags({"format": format, "interval": interval}):
        runs = readers.read_files(files, format, interval)
        parts = [_groups(run, group_by) if group_by else {} for run in runs]
    echo(_as_json(runs, parts) if as_json else _as_table(runs))
    if group_by and not as_json:
        echo(tables_text(200, groups.table([(run.name, one) for run, one in zip(runs, parts, strict=True)])))
    for run, one in zip(runs, parts, strict=True):
        if group_by and not one:
            echo(f"warning: {run.name} lists no requests: --group-by has nothing to group", err=True)


def _groups(run: "Result", by: str) -> groups.Groups:
    """The groups of a run's requests; none if the file lists none."""
    groups.edges(by)
    table = run.requests
    if table is None:
        return {}
    return groups.of(by, table.prompt_tokens, None, {metric: getattr(table, metric) for metric in groups.METRICS})


def _as_json(runs: Sequence["Result"], parts: Sequence[groups.Groups]) -> str:
    """The runs as JSON, without their tables of requests; what is no number is null."""
    content = [
        {
            "tool": run.tool,
            "name": run.name,
            "setup": dict(run.setup),
            "loop": run.loop,
            "totals": dict(run.totals),
            "per_request": run.requests is not None,
            "summary": run.summary,
            "ours": run.ours,
            "definitions": {
                name: {"tool": d.tool, "ours": d.ours, "same": d.same} for name, d in run.definitions.items()
            },
            "notes": list(run.notes),
            **({"groups": one} if one else {}),
        }
        for run, one in zip(runs, parts, strict=True)
    ]
    return json_text(content)


def _as_table(runs: Sequence["Result"]) -> str:
    """The numbers, then what the tools mean by their words, knee and collapse, and the notes."""
    many = len(runs) > (MOST_ALIKE if len({run.tool for run in runs}) == 1 else MOST_COLUMNS)
    table = _rows(runs) if many else _columns(runs)
    return tables_text(240 if many else 60 + 40 * len(runs), table, *_sentences(runs, many))


def _rows(runs: Sequence["Result"]) -> Any:
    """One row a run, in the order of the files: its load, what was answered, and means and p99 of every metric."""
    from rich.text import Text

    def totals(key: str) -> list[float | None]:
        return [run.totals.get(key) for run in runs]

    def times(metric: str, statistic: str) -> list[float | None]:
        return [None if (value := run.ours.get(metric, {}).get(statistic)) is None else 1_000 * value for run in runs]

    def middle(metric: str) -> str:
        there = [run.ours.get(metric, {}) for run in runs]
        return "mean" if any("mean" in one for one in there) else "p50"

    columns = [
        ("asked\n1/s", totals("requested_rate")), ("in flight\nat most", totals("max_concurrency")),
        ("answered\n1/s", totals("requests_per_second")), ("failed", totals("failed")),
        ("output\ntokens/s", totals("output_tokens_per_second")), ("in flight\nmean", totals("in_flight")),
        *((f"{word}\n{s} ms", times(metric, s)) for metric, word in WORDS.items() for s in (middle(metric), "p99")),
    ]  # fmt: skip
    table = new_table("run", "load")
    varied = _varied_settings(runs)
    for key in varied:
        table.add_column(Text(one_line(key)), justify="right")
    filled = [(heading, values) for heading, values in columns if any(value is not None for value in values)]
    for heading, _ in filled:
        table.add_column(heading, justify="right")
    for place, run in enumerate(runs):
        settings = [one_line(str(run.setup.get(key, "-"))) for key in varied]
        cells = ["-" if (value := values[place]) is None else digits(value) for _, values in filled]
        table.add_row(Text(one_line(run.name)), LOOPS[run.loop], *map(Text, settings), *cells)
    return table


def _varied_settings(runs: Sequence["Result"]) -> list[str]:
    """Settings that a sweep varied, without those that have a column of their own."""
    own = {"request_rate", "max_concurrency", "rate", "type_", "date", "streams"}
    keys = dict.fromkeys(key for run in runs for key in run.setup if key not in own)
    return [key for key in keys if len({str(run.setup.get(key)) for run in runs}) > 1]


def _columns(runs: Sequence["Result"]) -> Any:
    """One row a number and one column a run."""
    from rich.text import Text

    table = new_table("", "unit")
    for run in runs:
        table.add_column(Text(f"{run.tool}\n{one_line(run.name)}"), justify="right")
    if any(run.loop for run in runs):
        table.add_row("load", "", *(LOOPS[run.loop] for run in runs))
    for key in _varied_settings(runs) if len({run.tool for run in runs}) == 1 else ():
        table.add_row(one_line(key), "", *(Text(one_line(str(run.setup.get(key, "-")))) for run in runs))
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
    return table


def _times(table: Any, word: str, columns: Sequence[Mapping[str, float]]) -> None:
    """The statistics that some run has, all in one unit."""
    largest = max((value for column in columns for value in column.values()), default=0)
    unit, scale = ("s", 1) if largest >= 10 else ("ms", 1_000)
    for statistic in STATISTICS:
        values = [column.get(statistic) for column in columns]
        _row(table, f"{word} {statistic}", unit, [None if value is None else scale * value for value in values])


def _row(table: Any, label: str, unit: str, values: Sequence[float | None]) -> None:
    if any(value is not None for value in values):
        table.add_row(label, unit, *["-" if value is None else digits(value) for value in values])


def _sentences(runs: Sequence["Result"], many: bool) -> list[str]:
    from course.results import sentences, sweeps

    lines = ["", "Every number follows the definitions of the glossary, except in rows marked as a tool has it:"]
    definitions = []
    for run in runs:
        for metric, definition in run.definitions.items():
            line = f"- {run.tool}, {WORDS[metric]}: {definition.tool}"
            if not definition.same and line not in definitions:
                definitions.append(line)
    lines = [*lines, *definitions] if definitions else []
    for sweep in sweeps(runs):
        lines += [
            "",
            f"Over {sweep.label} from {sweep.loads[0]:g} to {sweep.loads[-1]:g}",
            *map("- {}".format, sentences(sweep)),
        ]
    if many:
        return [*lines, "", *_once(runs)]
    for run in runs:
        lines += ["", f"{one_line(run.name)} ({run.tool})", *[f"- {note}" for note in run.notes]]
    return lines


def _once(runs: Sequence["Result"]) -> list[str]:
    """Each kind of note once, with the run it is of and how many others have it: kinds differ in more than numbers."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for run in runs:
        for note in run.notes:
            kinds.setdefault(re.sub(r"\d[\d.,e+-]*", "#", note), []).append((run.name, note))
    lines = []
    for alike in kinds.values():
        name, note = alike[0]
        others = f", and {len(alike) - 1} more alike" if len(alike) > 1 else ""
        lines.append(f"- {one_line(name)}{others}: {note}")
    return lines
