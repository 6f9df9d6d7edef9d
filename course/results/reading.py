"""From a path to results: which tool wrote the file, told by what is in it."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from course.base.settings import quote, whole
from course.base.textfiles import MAX_JSON_BYTES, path_of, text
from course.results import (
    aiperf,
    genai_perf,
    guidellm,
    inference_perf,
    llmperf,
    llmservingsim,
    sglang_bench,
    vllm_bench,
)
from course.results.documents import documents
from course.results.result import Result

# In the order in which they are asked: where two tools have keys in common, the one with more of its own first.
READERS: dict[str, ModuleType] = {
    "llmservingsim": llmservingsim,
    "sglang": sglang_bench,
    "vllm": vllm_bench,
    "inference-perf": inference_perf,
    "guidellm": guidellm,
    "llmperf": llmperf,
    "aiperf": aiperf,
    "genai-perf": genai_perf,
}


def read(path: str | PathLike, format: str | None = None, run: int | None = None) -> Result:
    """The result in a file of a benchmark tool; the last one where the file holds several, or number `run` from 0.

    format: the tool, by its key in `READERS`; told by the content where None. ValueError, with the place in the file,
    for one that no reader understands or that holds what cannot have been measured; OSError where it cannot be opened.
    """
    found = read_all(path, format)
    number = len(found) - 1 if run is None else whole("run", run, low=0, high=len(found) - 1)
    if len(found) == 1:
        return found[0]
    said = f"The file holds {len(found)} runs; this is number {number}, counted from 0. read(..., run=) picks another"
    return replace(found[number], notes=(said, *found[number].notes))


def read_all(path: str | PathLike, format: str | None = None) -> list[Result]:
    """Every run in the file, in its order: SGLang appends one a call, guidellm keeps one a rate. See `read`."""
    if format is not None and format not in READERS:
        raise ValueError(f"format must be one of {', '.join(READERS)}, not {quote(format)}")
    path = path_of(path, "a result file")
    parsed = documents(path, text(path, "result", "JSON", MAX_JSON_BYTES))
    return READERS[format or _format_of(path, parsed[0].value)].read(path, parsed)


def _format_of(path: Path, value: Any) -> str:
    for name, reader in READERS.items():
        if reader.matches(value):
            return name
    keys = f" Its keys are {quote(', '.join(map(str, list(value)[:8])))}." if isinstance(value, dict) else ""
    raise ValueError(f"{path.name} is of no tool known here.{keys} Known are {', '.join(READERS)}; format= names one")
