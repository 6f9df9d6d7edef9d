"""The file of `course sweep`: a JSON line a run, simulated.

    {"sweep": "course simulate [...]", "settings": {"rate": 20.0, "max_num_seqs": 8}, "seed": 0, "summary":
     {"requests": 1400, "requests_per_second": 19.2, "ttft_mean": 0.041, ...}, "refused": null, ...}

Runs that were refused are in no table; a note says how many, and why the first of them.
"""

from pathlib import Path
from typing import Any

from course.base.settings import quote
from course.results.assemble import Draft, finish
from course.results.documents import Document
from course.results.result import Result
from course.results.rows import count, mapping, part, rate, seconds, setting, statistic, without_missing

TOOL = "course sweep"
METRICS = ("ttft", "tpot", "itl", "e2e", "queue_wait", "client_wait")
MEANINGS = {
    "ttft": ("arrival to the first token, simulated", True),
    "tpot": ("(E2E - TTFT) / (tokens - 1), simulated", True),
    "itl": ("every gap between two tokens, simulated", True),
    "e2e": ("arrival to the last token, simulated", True),
    "queue_wait": ("arrival to the first step, simulated", True),
    "client_wait": ("planned to sent, simulated", True),
}
BEGIN = '{"sweep": '


def whole_lines(content: str) -> str:
    """The content of such a file without a last line that was cut off; of any other file as it is."""
    end = content.rfind("\n") + 1
    return content[:end] if end and content.startswith(BEGIN) else content


def matches(value: Any) -> bool:
    """Whether a document is such a row."""
    return isinstance(value, dict) and {"sweep", "settings", "seed", "summary", "refused"} <= set(value)


def read(path: Path, documents: list[Document]) -> list[Result]:
    """A result for each run that was not refused. ValueError if all were."""
    rows = [(document.place(path), mapping(document.place(path), document.value)) for document in documents]
    refused = [row["refused"] for _, row in rows if row.get("refused") is not None]
    notes = ["Simulated: nothing of it was measured"]
    if refused:
        notes.append(f"{len(refused):,} of {len(rows):,} runs were refused, the first because {quote(refused[0])}")
    if len(refused) == len(rows):
        raise ValueError(f"{path.name} holds no run that was not refused: {quote(refused[0])}")
    served = [(place, row) for place, row in rows if row.get("refused") is None]
    names = [path.stem] if len(served) == 1 else [f"{path.stem}:{number}" for number in range(len(served))]
    return [_run(place, row, name, notes) for (place, row), name in zip(served, names, strict=True)]


def _run(place: str, row: Any, name: str, notes: list[str]) -> Result:
    settings, numbers = part(place, row, "settings"), part(place, row, "summary")
    reported: dict[str, dict[str, float]] = {}
    for key in numbers:
        metric, _, last = key.rpartition("_")
        if metric in METRICS and (label := statistic(last)) is not None:
            reported.setdefault(metric, {}).update(without_missing({label: seconds(place, numbers, key)}))
    totals = without_missing(
        {
            "requests": count(place, numbers, "requests"),
            "duration": seconds(place, numbers, "makespan"),
            "requests_per_second": rate(place, numbers, "requests_per_second"),
            "output_tokens_per_second": rate(place, numbers, "output_tokens_per_second"),
            "goodput": rate(place, numbers, "goodput"),
            "requested_rate": setting(settings, "rate"),
            "max_concurrency": setting(settings, "max_concurrency"),
            "preemptions": count(place, numbers, "preemptions"),
        }
    )
    known = {key: value for key, value in settings.items() if isinstance(value, str | int | float)}
    setup = {**known, "seed": row.get("seed")}
    reported = {metric: stats for metric, stats in reported.items() if stats}
    return finish(Draft(TOOL, name, MEANINGS, None, reported, {}, totals, setup, {}, list(notes), checked=False))
