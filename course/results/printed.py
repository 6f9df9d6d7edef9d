"""What `vllm bench serve` and SGLang's bench_serving print at the end of a run, as the keys of their result files.

    ============ Serving Benchmark Result ============
    Successful requests:                     320
    Mean TTFT (ms):                          1000.00

Or, without a head, as both printed it until the middle of 2024:

    Successful requests: 100
    Benchmark duration: 29.060651 s
    Mean TTFT: 1274.09 ms

A printed number has two digits; the files have all of them.
"""

import re
from pathlib import Path
from typing import Any

from course.base.textfiles import finite
from course.results.documents import Document

HEAD = re.compile(r"(?<!=)=+ *Serving Benchmark Result *=+|^[^\w\n]*Serving Benchmark Result[^\w\n]*$", re.MULTILINE)
OLD = re.compile(r"Successful requests: \d+[^\S\n]*\n.*Benchmark duration: [\d.]+ s\b")
UNITS = {"s": "s", "ms": "ms", "requests/s": "req/s", "tokens/s": "tok/s"}  # of the old words -> of the new ones
OPTION = re.compile(
    r"(?:--|\b)(request[-_]rate|max[-_]concurrency)[ =]+(\d{1,9}(?:\.\d{1,9})?|inf)\b"
)  # of its command
KEYS = {
    "backend": "backend",
    "traffic request rate": "request_rate",
    "request rate configured (rps)": "request_rate",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "max reqeuest concurrency": "max_concurrency",  # as SGLang before 0.4.1 spelled it
    "successful requests": "completed",
    "failed requests": "failed",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "total generated tokens (retokenized)": "total_output_tokens_retokenized",
    "request throughput (req/s)": "request_throughput",
    "request goodput (req/s)": "request_goodput",
    "output token throughput (tok/s)": "output_throughput",
    "total token throughput (tok/s)": "total_token_throughput",
    "concurrency": "concurrency",
    "accept length": "accept_length",
    "peak concurrent requests": "max_concurrent_requests",
}
STATISTIC = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?) (ttft|tpot|itl|e2el|e2e latency) \(ms\)")
LINE = re.compile(r"\b((?:[A-Z][\w]*|P\d+)[\w ()/.]*?) ?:\s+(\S+(?: set)?)(?: RPS\.| (s|ms|requests/s|tokens/s))?\s*$")
BEFORE = ("backend", "request_rate", "max_concurrency")  # printed before the block, once a run


def is_report(content: str) -> bool:
    """Whether a text holds such a block."""
    return bool(OLD.search(content) or ("Serving Benchmark Result" in content and HEAD.search(content)))


def report(path: Path, content: str) -> list[Document]:
    """Each block as the document that the tool would have saved, with the line where it begins.

    Raises ValueError for a block without requests and duration.
    """
    found: list[Document] = []
    before: dict[str, Any] = {}
    current: dict[str, Any] | None = None
    old = {len(f"{content[: one.start()]}.".splitlines()) for one in OLD.finditer(content)}
    for number, line in enumerate(content.splitlines(), start=1):
        if number in old or HEAD.search(line):
            current = dict(before)
            found.append(Document(number, current))
            before = {}
        match = LINE.search(line)
        if not match:
            before |= {name.replace("-", "_"): _value(value) for name, value in OPTION.findall(line)}
            continue
        name = " ".join(match[1].lower().split()) + (f" ({UNITS[match[3]]})" if match[3] else "")
        statistic = STATISTIC.fullmatch(name)
        key = f"{statistic[1]}_{statistic[2].replace(' ', '_')}_ms" if statistic else KEYS.get(name)
        if key is None:
            continue
        if current is None or (key in BEFORE and key in current):
            before[key] = _value(match[2])
        else:
            current.setdefault(key, _value(match[2]))
    for document in found:
        if not {"completed", "duration"} <= set(document.value):
            raise ValueError(
                f"{document.place(path)}: the printed result has no line with successful requests or with the duration"
                ": paste the whole block"
            )
        done, seconds = document.value["completed"], document.value["duration"]
        if finite(done) and finite(seconds) and seconds > 0 and "request_throughput" not in document.value:
            document.value.update(request_throughput=done / seconds, not_printed="request_throughput")
    return found


def _value(text: str) -> Any:
    text = text.replace(",", "")
    try:
        return int(text) if re.fullmatch(r"\d+", text) else float(text)
    except ValueError:
        return None if text in ("None", "not", "not set", "N/A") else text
