"""genai-perf: profile_export_genai_perf.json, a block of statistics a metric, each with its unit.

    {"request_throughput": {"unit": "requests/sec", "avg": 7.1}, "request_latency": {"unit": "ms", "avg": 900.0,
     "p99": 1200.0, ...}, "time_to_first_token": {...}, "inter_token_latency": {...}, "input_config": {...}}

Its inter-token latency is what is called TPOT here. The share of failed requests is not in the file.
"""

from pathlib import Path
from typing import Any

from course.results import aiperf
from course.results.assemble import Draft, finish
from course.results.documents import Document
from course.results.result import Result
from course.results.rows import mapping

TOOL = "genai-perf"
MEANINGS = {
    "ttft": ("request sent to the first piece with content", True),
    "tpot": ("inter_token_latency: (latency - TTFT) / (tokens - 1), one value a request", True),
    "e2e": ("request sent to the last piece of the answer", True),
}
NO_COUNTS = "The file does not say how many requests there were, nor how many failed"


def matches(value: Any) -> bool:
    """Whether a document is of this tool; asked after aiperf, whose keys are alike."""
    return isinstance(value, dict) and {"request_latency", "request_throughput"} <= set(value)


def read(path: Path, documents: list[Document]) -> list[Result]:
    """The run of each document."""
    return [_run(path, document) for document in documents]


def _run(path: Path, document: Document) -> Result:
    place = document.place(path)
    doc = mapping(place, document.value)
    reported, totals = aiperf.blocks(place, doc)
    load, notes = aiperf.load_of(place, doc)
    totals |= load
    notes += [] if "requests" in totals else [NO_COUNTS]
    return finish(Draft(TOOL, path.stem, MEANINGS, None, reported, {}, totals, {}, {}, notes))
