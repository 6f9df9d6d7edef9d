"""Result files of benchmark tools, each read into the same table and the same words.

    result = results.read("requests.jsonl")
    result.requests.ttft, result.summary["ttft"]["p99"], result.notes
    serve(result.workload(), ...)

Nothing is averaged, repaired or left out in silence: `notes` says it, or the file is refused with the place.
"""

from course.results.definitions import OURS, Definition
from course.results.reading import READERS, read, read_all, read_files, reports
from course.results.result import Requests, Result
from course.results.sweep import Sweep, sentences, sweeps

__all__ = [
    "OURS",
    "READERS",
    "Definition",
    "Requests",
    "Result",
    "Sweep",
    "read",
    "read_all",
    "read_files",
    "reports",
    "sentences",
    "sweeps",
]
