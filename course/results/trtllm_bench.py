"""trtllm-bench of TensorRT-LLM: the file of --report_json, and what it prints at the end of a run (0.17 to 1.2).

    {"engine": {...}, "world_info": {"max_batch_size": 256, "max_num_tokens": 8192, "issue_rate": 5e14, ...},
     "request_info": {"num_requests": 3000, "avg_num_concurrent_requests": 94.6, "avg_input_length": 128.0, ...},
     "performance": {"total_latency_ms": 16406.1, "request_throughput_req_s": 182.9, ...}, "streaming_metrics": {...}}

    Request Throughput (req/sec):                     86.5373
    [TTFT] P99    : 232.4339

Times are in milliseconds, percentiles are single requests (no interpolation). TTFT and TPOT are there with --streaming.
`throughput` hands over all requests at once, so TTFT and latency have the wait for a place in the batch inside.
"""

import re
from pathlib import Path
from typing import Any

from course.results.assemble import Draft, Statistics, each, finish
from course.results.documents import Document
from course.results.load import BURST, OPEN
from course.results.result import Result
from course.results.rows import NAN, mapping, number, part, rate, setting, statistics, without_missing

TOOL = "trtllm-bench"
MEANINGS = {
    "ttft": ("request handed over to its first token, the wait for a place in the batch included", True),
    "tpot": ("(last token - first token) / (tokens - 1), mean over requests", True),
    "e2e": ("request handed over to its last token, the wait for a place in the batch included", True),
}
AT_ONCE = 1e4  # requests/s: more than any client sends one by one
ENGINE = ("model", "version", "backend", "dtype", "kv_cache_dtype", "quantization")
WORLD = ("tp_size", "pp_size", "ep_size", "max_batch_size", "max_num_tokens", "scheduling_policy")
BLOCKS = {"latency": "request_latency_percentiles_ms", "ttft": "ttft_percentiles", "tpot": "tpot_percentiles"}
LINES = {
    "Number of requests": ("request_info", "num_requests"),
    "Number of concurrent requests": ("request_info", "avg_num_concurrent_requests"),
    "Average Input Length (tokens)": ("request_info", "avg_input_length"),
    "Average Output Length (tokens)": ("request_info", "avg_output_length"),
    "Request Throughput (req/sec)": ("performance", "request_throughput_req_s"),
    "Total Output Throughput (tokens/sec)": ("performance", "system_output_throughput_tok_s"),
    "Total Token Throughput (tokens/sec)": ("performance", "system_total_throughput_tok_s"),
    "Total Latency (ms)": ("performance", "total_latency_ms"),
    "Average request latency (ms)": ("performance", "avg_request_latency_ms"),
    "Average time-to-first-token [TTFT] (ms)": ("streaming_metrics", "avg_ttft_ms"),
    "Average time-per-output-token [TPOT] (ms)": ("streaming_metrics", "avg_tpot_ms"),
    "Issue Rate (req/sec)": ("world_info", "issue_rate"),
    "Max Runtime Batch Size": ("world_info", "max_batch_size"),
    "Max Runtime Tokens": ("world_info", "max_num_tokens"),
    "Scheduling Policy": ("world_info", "scheduling_policy"),
    "TP Size": ("world_info", "tp_size"),
    "PP Size": ("world_info", "pp_size"),
    "EP Size": ("world_info", "ep_size"),
    "Model": ("engine", "model"),
    "TensorRT-LLM Version": ("engine", "version"),
    "TensorRT LLM Version": ("engine", "version"),
    "Dtype": ("engine", "dtype"),
    "KV Cache Dtype": ("engine", "kv_cache_dtype"),
    "Quantization": ("engine", "quantization"),
}
PRINTOUT = re.compile(r"^[^\"{}\n]*Request Throughput \(req/sec\):\s+\d", re.MULTILINE)
PERCENTILE = re.compile(r"\[(TTFT|TPOT|Latency)\] ([A-Z0-9]+)\s*: ([0-9.eE+-]+)")
NAMES = {"minimum": "min", "maximum": "max", "average": "mean"}


def matches(value: Any) -> bool:
    """Whether a document is of this tool."""
    speed = value.get("performance") if isinstance(value, dict) else None
    return isinstance(speed, dict) and "request_throughput_req_s" in speed


def is_report(content: str) -> bool:
    """Whether a text holds what the tool prints at the end of a run."""
    return "Request Throughput (req/sec):" in content and PRINTOUT.search(content) is not None


def read(path: Path, documents: list[Document]) -> list[Result]:
    """The run of each document."""
    return each(path, documents, _run)


def report(path: Path, content: str) -> list[Document]:
    """Each run of a printed report as the document that --report_json would have written; logs around it are skipped.

    A run ends where a line of it comes again.
    """
    runs: list[Document] = []
    for line_number, line in enumerate(content.splitlines(), start=1):
        text = re.sub(r"^\[[^]]*\]\s*\[[^]]*\]\s*(\[I\]\s*)?", "", line.strip())  # the time and level of a logger
        key, colon, value = text.partition(":")
        entry = value.strip()
        place: tuple[str, ...] | None = LINES.get(key.strip())
        match = PERCENTILE.search(text)
        if match:
            block = "performance" if match[1] == "Latency" else "streaming_metrics"
            key = match[2].lower()
            place, entry = (block, BLOCKS[match[1].lower()], key), match[3]
        elif not colon or place is None or not entry:
            continue
        if not runs or _holds(runs[-1].value, place):
            runs.append(Document(line_number, {}))
        inner = runs[-1].value
        for name in place[:-1]:
            inner = inner.setdefault(name, {})
        inner[place[-1]] = _value(entry)
    return [one for one in runs if matches(one.value)]


def _holds(value: dict, place: tuple[str, ...]) -> bool:
    for name in place:
        if name not in value:
            return False
        value = value[name]
    return True


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return None if text in ("None", "N/A") else text


def _run(path: Path, document: Document, name: str) -> Result:
    place = document.place(path)
    doc = mapping(place, document.value)
    info, speed, stream, world, engine = (
        part(place, doc, key) for key in ("request_info", "performance", "streaming_metrics", "world_info", "engine")
    )
    reported: Statistics = {}
    for metric, block, mean in (
        ("e2e", part(place, speed, BLOCKS["latency"]), number(place, speed, "avg_request_latency_ms")),
        ("ttft", part(place, stream, BLOCKS["ttft"]), number(place, stream, "avg_ttft_ms")),
        ("tpot", part(place, stream, BLOCKS["tpot"]), number(place, stream, "avg_tpot_ms")),
    ):
        renamed = {NAMES.get(key, key): value for key, value in block.items()}
        numbers = statistics(f"{place}, {metric}", renamed, 1e-3) | without_missing({"mean": mean / 1e3})
        if numbers:
            reported[metric] = numbers
    requests = number(place, info, "num_requests")
    totals = without_missing(
        {
            "requests": requests,
            "duration": number(place, speed, "total_latency_ms") / 1e3,
            "requests_per_second": rate(place, speed, "request_throughput_req_s"),
            "output_tokens_per_second": rate(place, speed, "system_output_throughput_tok_s"),
            "total_tokens_per_second": rate(place, speed, "system_total_throughput_tok_s"),
            "mean_prompt_tokens": rate(place, info, "avg_input_length"),
            "mean_output_tokens": rate(place, info, "avg_output_length"),
            "in_flight": rate(place, info, "avg_num_concurrent_requests"),
        }
    )
    if "requests" not in totals and {"duration", "requests_per_second"} <= set(totals):
        totals["requests"] = round(totals["duration"] * totals["requests_per_second"])  # a report cut out of a log
    issued = setting(world, "issue_rate")
    loop = ""
    if issued > 0:
        loop = BURST if issued > AT_ONCE else OPEN
    if loop == OPEN:
        totals["offered_rate"] = issued
    setup = {key: engine[key] for key in ENGINE if isinstance(engine.get(key), str | int | float)}
    setup |= {key: world[key] for key in WORLD if isinstance(world.get(key), str | int | float)}
    notes = []
    if not stream:
        notes.append("Answers were not streamed (--streaming), so the file has no TTFT and no TPOT")
    decoding = part(place, doc, "decoding_stats")
    drafted = number(place, part(place, decoding, "acceptance_length_percentiles"), "average") if decoding else NAN
    return finish(Draft(TOOL, name, MEANINGS, None, reported, {}, totals, setup, {}, notes, loop, drafted))
