"""`vllm bench serve` (and benchmark_serving.py before it): --save-result, with --save-detailed lists of every request.

    {"model_id": "...", "num_prompts": 500, "request_rate": "inf", "max_concurrency": 128, "duration": 61.2,
     "completed": 500, "total_output_tokens": 407356, "request_throughput": 8.17, "mean_ttft_ms": 795.2, ...}

Summaries are in milliseconds, lists in seconds. request_rate is a number, "inf", or Infinity. Some versions write the
key "request_goodput:" with its colon.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course.results.assemble import Draft, Statistics, each, finish
from course.results.documents import Document
from course.results.lists import table_of
from course.results.result import Result
from course.results.rows import NAN, count, flat, mapping, rate, seconds, setting, without_missing

TOOL = "vLLM bench serve"
METRICS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"}
MEANINGS = {
    "ttft": ("request sent to the first piece of the answer", True),
    "tpot": ("(latency - TTFT) / (tokens - 1), mean over requests", True),
    "itl": ("gaps between pieces of the answers, mean over all of them: long answers count more than in TPOT", True),
    "e2e": ("request sent to the last piece of the answer", True),
}
UNLIKE = 0.05  # of the mean TPOT: a mean ITL that is further off is explained
SETUP = ("model_id", "endpoint_type", "backend", "num_prompts", "request_rate", "burstiness", "max_concurrency", "date")


def matches(value: Any) -> bool:
    """Whether a document is a run of this tool; asked after SGLang, whose keys are alike."""
    return isinstance(value, dict) and {"duration", "completed"} <= set(value) and "request_throughput" in value


def read(path: Path, documents: list[Document]) -> list[Result]:
    """Every run in the file: --append-result writes one a line."""
    return each(path, documents, _run)


def _run(path: Path, document: Document, name: str) -> Result:
    place = document.place(path)
    doc = mapping(place, document.value)
    table, notes = table_of(place, doc)
    totals = totals_of(place, doc)
    completed, sent = totals.get("requests", float("nan")), count(place, doc, "num_prompts")
    if "failed" not in totals and sent >= completed:
        totals["failed"] = sent - completed
    for key in ("request_goodput", "request_goodput:"):
        totals |= without_missing({"goodput": rate(place, doc, key)})
    reported = flat(place, doc, METRICS) if completed != 0 else {}  # of no request the tool writes means of 0
    setup = {key: doc[key] for key in SETUP if isinstance(doc.get(key), str | int | float)}
    values, sentences = ({}, []) if table is not None else _e2e(reported, totals)
    notes += sentences + _weights(reported)
    return finish(Draft(TOOL, name, MEANINGS, table, reported, values, totals, setup, {}, notes))


def _e2e(reported: Statistics, totals: Mapping[str, float]) -> tuple[Statistics, list[str]]:
    """The mean E2E where the file lacks it: the mean TTFT, and the mean of all gaps times the gaps of an answer."""
    first, gap = (reported.get(name, {}).get("mean", NAN) for name in ("ttft", "itl"))
    gaps = totals.get("output_tokens", NAN) / (totals.get("requests", NAN) or NAN) - 1
    mean = first + gap * gaps
    if "e2e" in reported or not mean > 0:
        return {}, []
    return {"e2e": {"mean": mean}}, [
        f"E2E is not in the file (--percentile-metrics ttft,tpot,itl,e2el adds it): TTFT + ITL x (tokens - 1) of the "
        f"means make {mean:.4g} s, if every piece of the stream was one token"
    ]


def _weights(reported: Statistics) -> list[str]:
    """Why a mean TPOT and a mean ITL differ, where they do."""
    tpot, itl = (reported.get(name, {}).get("mean", NAN) for name in ("tpot", "itl"))
    if not abs(tpot - itl) > UNLIKE * tpot:
        return []
    return [
        f"The mean TPOT of {1000 * tpot:.4g} ms counts every request alike, the mean ITL of {1000 * itl:.4g} ms every "
        f"gap: the requests with many tokens were {'faster' if itl < tpot else 'slower'}"
    ]


def totals_of(place: str, doc: Mapping) -> dict[str, float]:
    """Counts, seconds and rates, which SGLang writes under the same keys."""
    return without_missing(
        {
            "requests": count(place, doc, "completed"),
            "failed": count(place, doc, "failed"),
            "duration": seconds(place, doc, "duration"),
            "prompt_tokens": count(place, doc, "total_input_tokens"),
            "output_tokens": count(place, doc, "total_output_tokens"),
            "requests_per_second": rate(place, doc, "request_throughput"),
            "output_tokens_per_second": rate(place, doc, "output_throughput"),
            "total_tokens_per_second": rate(place, doc, "total_token_throughput"),
            "requested_rate": setting(doc, "request_rate"),
            "max_concurrency": setting(doc, "max_concurrency"),
        }
    )
