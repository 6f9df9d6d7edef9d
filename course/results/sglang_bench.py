"""SGLang's bench_serving: one line of JSON a run, appended to the same file; --output-details adds lists of requests.

    {"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "duration": 412.5, "completed": 10000,
     "total_output_tokens": 5120000, "mean_e2e_latency_ms": 381236.8, "median_ttft_ms": 10014.1, ...}

Early versions write medians of TTFT and ITL alone, and no TPOT. Times are in milliseconds, lists in seconds.
random_output_len is the longest answer asked for; with random_range_ratio r lengths are even between r times it and it.
accept_length is the mean of tokens a step, with speculation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course.base.textfiles import finite
from course.results import vllm_bench
from course.results.assemble import Draft, each, finish
from course.results.documents import Document
from course.results.lists import table_of, without_empty
from course.results.load import loop_of
from course.results.result import Result
from course.results.rows import count, flat, mapping, number, rate, setting, unread, without_missing

TOOL = "SGLang bench_serving"
METRICS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e_latency": "e2e"}
LENGTHS = ("dataset_name", "random_input_len", "random_output_len", "random_range_ratio")
MEANINGS = {
    "ttft": ("request sent to the first piece of the answer", True),
    "tpot": ("(latency - TTFT) / (tokens - 1), mean over requests", True),
    "itl": (
        "gaps between pieces of the answers; by its own API shared among the tokens of the piece, since 2025",
        True,
    ),
    "e2e": ("request sent to the last piece of the answer", True),
}
SETUP = ("backend", "dataset_name", "request_rate", "max_concurrency", "random_input_len", "random_output_len")
RETOKENISED_SHARE = 0.02  # of the output tokens; a difference above it is pointed out


def matches(value: Any) -> bool:
    """Whether a document is a run of this tool."""
    if not isinstance(value, dict) or not {"duration", "completed"} <= set(value):
        return False
    return "total_output_tokens_retokenized" in value or "median_e2e_latency_ms" in value


def read(path: Path, documents: list[Document]) -> list[Result]:
    """Every run in the file."""
    return each(path, documents, _run)


def _run(path: Path, document: Document, name: str) -> Result:
    place = document.place(path)
    doc = mapping(place, document.value)
    table, notes = table_of(place, doc)
    totals = vllm_bench.totals_of(place, doc)
    totals |= without_missing({"total_tokens_per_second": rate(place, doc, "total_throughput")})
    if "requests_per_second" not in totals and totals.get("duration", 0) > 0 and "requests" in totals:
        totals["requests_per_second"] = totals["requests"] / totals["duration"]  # early versions leave it out
    concurrency = number(place, doc, "concurrency")
    again = count(place, doc, "total_output_tokens_retokenized")
    server = totals.get("output_tokens", float("nan"))
    if abs(again - server) > RETOKENISED_SHARE * server:
        notes.append(
            f"The server counted {server:,.0f} output tokens, the client's tokeniser {again:,.0f}: rates are per the "
            "server's"
        )
    totals |= without_missing({"in_flight": concurrency})
    totals |= _asked_lengths(doc)
    reported = flat(place, doc, METRICS) if totals.get("requests") != 0 else {}
    totals, reported, sentences = without_empty(table, totals, reported)
    notes += [*sentences, *unread(doc, METRICS, (*vllm_bench.KNOWN, *LENGTHS))]
    setup = {key: doc[key] for key in SETUP if isinstance(doc.get(key), str | int | float)}
    prompts = totals.get("requests", float("nan")) + totals.get("failed", 0.0)
    loop = loop_of(totals, vllm_bench.is_unlimited(doc), prompts)
    drafted = number(place, doc, "accept_length")
    return finish(Draft(TOOL, name, MEANINGS, table, reported, {}, totals, setup, {}, notes, loop, drafted))


def _asked_lengths(doc: Mapping) -> dict[str, float]:
    """Lengths that were asked for, if they were drawn: the mean if the file says the range, else the limit."""
    if doc.get("dataset_name") not in ("random", "random-ids"):
        return {}
    lengths: dict[str, float] = {}
    ratio: Any = doc.get("random_range_ratio")
    for side, key in (("prompt", "random_input_len"), ("output", "random_output_len")):
        longest = setting(doc, key)
        if finite(ratio) and 0 <= ratio <= 1:
            lengths[f"asked_{side}_tokens"] = longest * (1 + ratio) / 2
        else:
            lengths[f"most_{side}_tokens"] = longest
    return without_missing(lengths)
