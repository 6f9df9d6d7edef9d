"""Tables of benchmark results as people write them: a metric a row, or a run a row, in Markdown or between lines.

    | **Successful requests**    | 660   |        | Concurrency | N Req | E2EL (ms) | Req Tput (RPS) |
    | **Benchmark duration (s)** | 22.30 |        |          32 |   256 |    8530.8 |          3.734 |

They become the keys of vLLM's file. What a table has no name or no unit for is left out.
"""

import re
from collections.abc import Iterator
from typing import Any

from course.results.documents import Document

ENDS = ("|", "│", "┃")
EDGE = re.compile(r"[-:=+|─━┏┓┗┛┡┩├┤┼╇╈┳┻└┘┌┐┬┴│┃\s]*")
NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?![\w.])(?:\s*(ms|s|sec|seconds?)\b)?")
COUNTS = {
    "completed": "successful requests|succeed requests|completed requests|complete requests|n req|n|num prompts",
    "num_prompts": "total requests|number of requests",
    "failed": "failed requests",
    "max_concurrency": "concurrency|concur|concurrent requests|number of concurrency|max concurrency|concurrency level|"
    "maximum request concurrency|max request concurrency",
    "total_input_tokens": "total input tokens",
    "total_output_tokens": "total generated tokens|total output tokens",
    "request_throughput": "request throughput|requests per second|req/s|rps|req tput|qps",
    "output_throughput": "output token throughput",
    "total_token_throughput": "total token throughput",
}
TIMES = {
    "duration": "benchmark duration|time taken for tests|total test duration|test duration",
    "mean_e2el_ms": "e2el|e2e latency|latency|response time",
    "mean_ttft_ms": "ttft|time to first token",
    "mean_tpot_ms": "tpot|time per output token",
    "mean_itl_ms": "itl|inter-token latency",
}
KEYS = {name: key for table in (COUNTS, TIMES) for key, names in table.items() for name in names.split("|")}
UNIT = re.compile(r"\((ms|s|req/s|tok/s|tps|rps|seconds)\)")
MEAN = re.compile(r"^(?:mean|average|avg)\.? | (?:mean|average|avg)$")


def documents(content: str) -> list[Document]:
    """The run of each row or column, with the line where its table begins."""
    return [
        Document(number, found)
        for number, rows in _tables(content)
        for found in (*_of_columns(rows), *_of_rows(rows))
        if {"completed", "duration"} <= found.keys() and found["duration"] > 0
    ]


def _tables(content: str) -> Iterator[tuple[int, list[list[str]]]]:
    """Lines of cells that stand together, with the number of the first."""
    rows: list[list[str]] = []
    lines = content.splitlines() if any(end in content for end in ENDS) else []
    for number, line in enumerate((*lines, ""), 1):
        if line.rstrip().endswith(ENDS):
            cells = [cell.strip().strip("*`").strip() for cell in re.split(r"[|│┃]", line)[1:-1]]
            rows += [] if EDGE.fullmatch(line) else [cells]
        elif rows and not EDGE.fullmatch(line.strip() or "."):
            yield number - len(rows), rows
            rows = []


def _key(name: str) -> tuple[str, str]:
    """The key of a metric's name, and its unit; "" if it has none."""
    unit = UNIT.search(name.lower())
    plain = " ".join(UNIT.sub(" ", name.lower()).split())
    mean = MEAN.sub("", plain)
    key = KEYS.get(plain, KEYS.get(mean, ""))
    return ("" if key == "completed" and mean != plain else key), unit[1] if unit else ""


def _put(found: dict[str, Any], key: str, unit: str, cell: str) -> None:
    number = NUMBER.search(cell)
    unit = unit or (number and number[2]) or ""
    if not (key and number) or (key in TIMES and not unit.startswith(("s", "ms"))):
        return
    value = float(number[1].replace(",", ""))
    if key in TIMES and key.endswith("_ms") and unit.startswith("s"):
        value *= 1e3
    found.setdefault(key, int(value) if value == int(value) else value)


def _of_columns(rows: list[list[str]]) -> Iterator[dict[str, Any]]:
    """Each column of a table whose first cells are names of metrics."""
    for column in range(1, max(map(len, rows))):
        found: dict[str, Any] = {}
        for row in rows:
            if column < len(row):
                _put(found, *_key(row[0]), row[column])
        yield _whole(found)


def _of_rows(rows: list[list[str]]) -> Iterator[dict[str, Any]]:
    """Each row below a head of names of metrics."""
    head = [_key(cell) for cell in rows[0]]
    for row in rows[1:]:
        found: dict[str, Any] = {}
        for (key, unit), cell in zip(head, row, strict=False):
            _put(found, key, unit, cell)
        yield _whole(found)


def _whole(found: dict[str, Any]) -> dict[str, Any]:
    """With the rate and the duration, each from the other."""
    done, seconds, rate = (found.get(key) for key in ("completed", "duration", "request_throughput"))
    if done and seconds and not rate:
        found |= {"request_throughput": done / seconds, "not_printed": "request_throughput"}
    elif done and rate and not seconds:
        found |= {"duration": done / rate, "not_printed": "duration"}
    return found
