"""From a path to results: which tool wrote the file, told by what is in it."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from course.base.settings import MAX_SECONDS, quote, real, whole
from course.base.textfiles import MAX_JSON_BYTES, json_value, path_of, text
from course.results import (
    aiperf,
    aiperf_sweep,
    course_sweep,
    genai_perf,
    guidellm,
    guidellm_csv,
    inference_perf,
    llmperf,
    llmservingsim,
    printed,
    seen,
    sglang_bench,
    tables,
    trtllm_bench,
    vllm_bench,
    vllm_metrics,
)
from course.results.documents import Document, documents, runs
from course.results.result import Result
from course.results.rows import NAN

# In the order in which they are asked: if two tools have keys in common, the one with more of its own first.
READERS: dict[str, ModuleType] = {
    "course-sweep": course_sweep,
    "llmservingsim": llmservingsim,
    "sglang": sglang_bench,
    "vllm": vllm_bench,
    "inference-perf": inference_perf,
    "guidellm": guidellm,
    "llmperf": llmperf,
    "aiperf-sweep": aiperf_sweep,
    "aiperf": aiperf,
    "genai-perf": genai_perf,
    "trtllm": trtllm_bench,
    "vllm-metrics": vllm_metrics,
}


def read(path: str | PathLike, format: str | None = None, run: int | None = None) -> Result:
    """The result in a file of a benchmark tool; the last one if the file holds several, or number `run` from 0.

    format: the tool, by its key in `READERS`; told by the content if None. ValueError, with the place in the file,
    for one that no reader understands or that holds what cannot have been measured; OSError if it cannot be opened.
    """
    results = read_all(path, format)
    number = len(results) - 1 if run is None else whole("run", run, low=0, high=len(results) - 1)
    if len(results) == 1:
        return results[0]
    note = f"The file holds {len(results)} runs; this is number {number}, counted from 0. read(..., run=) picks another"
    return replace(results[number], notes=(note, *results[number].notes))


def read_all(path: str | PathLike, format: str | None = None) -> list[Result]:
    """Every run in the file, in its order: SGLang appends one a call, guidellm keeps one a rate, a sweep is a list.

    See `read`.
    """
    return read_files([path], format)


def read_files(
    paths: Sequence[str | PathLike], format: str | None = None, interval: float | None = None
) -> list[Result]:
    """Every run in some files. Metrics pages are taken together: of several, what happened between neighbours.

    interval: seconds between two scrapes of a metrics page. Errors as in `read`.
    """
    if format is not None and format not in READERS:
        raise ValueError(f"format must be one of {', '.join(READERS)}, not {quote(format)}")
    apart = NAN if interval is None else real("interval", interval, above=0, high=MAX_SECONDS)
    results: list[Result] = []
    scrapes: list[vllm_metrics.Scrape] = []
    place = 0
    for one in paths:
        path = path_of(one, "a result file")
        content = text(path, "result", "JSON", MAX_JSON_BYTES)
        if format == "vllm-metrics" or (format is None and vllm_metrics.is_page(content)):
            place = place if scrapes else len(results)
            scrapes += vllm_metrics.scrapes_of(path, content)
        else:
            results += _runs(path, content, format)
    if scrapes:
        results[place:place] = vllm_metrics.results_of(scrapes, apart)
    elif interval is not None:
        raise ValueError(
            "interval is the time between two scrapes of a metrics page, and none of these files is such a page"
        )
    return results


def reports(path: Path, content: str) -> list[tuple[dict[str, Any], Result]]:
    """The results that a tool printed into a text, each with the document that it would have saved; [] for none.

    Or rows that vLLM's or SGLang's benchmark appends to a file, each whole on its line.
    """
    parsed = _printed(path, content, None) or _rows_among(path, content)
    return [(one.value, READERS[_format_of(path, one.value)].read(path, [one])[0]) for one in parsed]


def _printed(path: Path, content: str, format: str | None) -> list[Document]:
    if format in (None, "trtllm") and trtllm_bench.is_report(content):
        return trtllm_bench.report(path, content)
    if format in (None, "guidellm") and guidellm_csv.is_table(content):
        return guidellm_csv.table(path, content)
    if format in (None, "vllm", "sglang") and printed.is_report(content):
        return printed.report(path, content)
    return tables.documents(content) if format in (None, "vllm") else []


def _rows_among(path: Path, content: str) -> list[Document]:
    """The lines of a text that are such rows, wherever they stand."""
    found: list[Document] = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.startswith("{") and '"completed"' in line and line.rstrip().endswith("}"):
            try:
                value = json_value(path, line, number)
            except ValueError:
                continue
            found += [Document(number, value)] if sglang_bench.matches(value) or vllm_bench.matches(value) else []
    return found


def _runs(path: Path, content: str, format: str | None) -> list[Result]:
    parsed = _printed(path, content, format) or documents(path, course_sweep.whole_lines(content))
    if format is None and _matching(parsed[0].value) is None:
        parsed = runs(parsed)
    reader = READERS[format or _format_of(path, parsed[0].value)]
    first = [one._replace(value=seen.watched(one.value)) for one in parsed[: seen.ROWS]]
    parsed = first + parsed[seen.ROWS :]
    results = reader.read(path, parsed)
    if not any(map(_holds_a_number, results)):
        raise ValueError(f"{path.name} holds no measured number. Check that the benchmark ran to its end")
    said = " ".join(note for result in results for note in result.notes)
    notes = dict.fromkeys(note for one in first for note in seen.renamed(one.value))
    more = tuple(note for note in notes if note.partition(" ")[0] not in said)
    return [replace(one, notes=(*one.notes, *more)) for one in results] if more else results


def _holds_a_number(result: Result) -> bool:
    numbers = [*result.totals.values(), *(value for metric in result.ours.values() for value in metric.values())]
    return any(value is not None and value == value for value in numbers) or bool(
        result.requests is not None and len(result.requests.ttft)
    )


def _format_of(path: Path, value: Any) -> str:
    name = _matching(value)
    if name is not None:
        return name
    keys = f" Its keys are {quote(', '.join(map(str, list(value)[:8])))}." if isinstance(value, dict) else ""
    raise ValueError(
        f"{path.name} was not written by a tool that the course knows.{keys} Known are {', '.join(READERS)}; "
        f"name one with `format`"
    )


def _matching(value: Any) -> str | None:
    return next((name for name, reader in READERS.items() if reader.matches(value)), None)
