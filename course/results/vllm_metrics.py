"""A page of Prometheus metrics as vLLM prints it at /metrics, once or twice some time apart.

Names are those of vLLM's V1 engine (vllm/v1/metrics/loggers.py), older ones if they differ. Counters and histograms
count since the engine started, gauges are of the moment of the scrape. Two scrapes give what happened between them;
without their moments there are no rates, since no page says when it was printed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, nan
from pathlib import Path
from typing import Any

from course.base.settings import quote
from course.results import metric_remarks
from course.results.assemble import Draft, Statistics, finish
from course.results.documents import Document
from course.results.exposition import Histogram, Page, pages
from course.results.result import Result
from course.results.rows import without_missing

TOOL = "vLLM metrics page"
HISTOGRAMS = {
    "ttft": ("vllm:time_to_first_token_seconds",),
    "tpot": ("vllm:request_time_per_output_token_seconds",),
    "itl": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "e2e": ("vllm:e2e_request_latency_seconds",),
    "queue_wait": ("vllm:request_queue_time_seconds",),
}
MEANINGS = {
    "ttft": ("arrival at the server to the first token, its own clock", True),
    "tpot": ("(last token - first token) / (tokens - 1), of requests that ended", True),
    "itl": ("gaps between outputs of one answer; with drafted tokens an output is several tokens", True),
    "e2e": ("arrival at the server to the last token, its own clock", True),
    "queue_wait": ("time in the waiting queue, of requests that ended", True),
}
PERCENTILES = (50, 90, 95, 99)
LEAST = 5.0  # seconds between two files: less is what a copy of them takes
ALIKE = 3.0  # times what is in flight on the pages: seconds that make the average more or less than that are others'
COUNTERS = {
    "prompt_tokens": ("vllm:prompt_tokens_total",),
    "output_tokens": ("vllm:generation_tokens_total",),
    "preemptions": ("vllm:num_preemptions_total",),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "drafts": ("vllm:spec_decode_num_drafts_total",),
    "drafted_tokens": ("vllm:spec_decode_num_draft_tokens_total",),
    "accepted_tokens": ("vllm:spec_decode_num_accepted_tokens_total",),
}
GOOD = ("stop", "length", "repetition")
SETTINGS = {
    "num_gpu_blocks": int, "block_size": int, "gpu_memory_utilization": float, "cache_dtype": str,
    "enable_prefix_caching": str, "kv_cache_memory_bytes": int,
}  # fmt: skip


def matches(value: Any) -> bool:
    """False: a page is no JSON, and is recognised by `is_page`."""
    return False


def read(path: Path, documents: list[Document]) -> list[Result]:
    """Raises ValueError: a JSON document is no page of metrics."""
    raise ValueError(f"{path.name} is JSON, and a metrics page is lines of name{{labels}} value")


def is_page(content: str) -> bool:
    """Whether a text is a page of metrics: its first line that is not blank is a remark or a sample of one."""
    first = content.lstrip()[:2_000].partition("\n")[0]
    return first.startswith(("# HELP ", "# TYPE ", "# EOF")) or first.startswith(("vllm:", "process_", "python_"))


@dataclass(frozen=True)
class Scrape:
    """One page and how it is called. written: when its file was last written [s], NaN if that says nothing."""

    page: Page
    name: str
    written: float = nan


def scrapes_of(path: Path, content: str) -> list[Scrape]:
    """The pages of a file, with names; ValueError if they are of another server."""
    several = pages(path, content)
    for page in several:
        if not any(name.startswith("vllm:") for name in page.samples):
            others = sorted({name.partition(":")[0] for name in page.samples if ":" in name})
            whose = f" Its metrics are {quote(', '.join(others[:5]))}" if others else ""
            raise ValueError(f"{path.name} is a metrics page without metrics of vLLM (vllm:...).{whose}")
    if len(several) == 1:
        return [Scrape(several[0], path.stem, path.stat().st_mtime)]
    return [Scrape(page, f"{path.stem}:{number}") for number, page in enumerate(several)]


def results_of(scrapes: Sequence[Scrape], seconds: float = nan) -> list[Result]:
    """The result of one scrape, since the engine started; of several, of what happened between neighbours.

    seconds: how far apart neighbours are. If it is not given the moments in the pages count, else the times at which
    their files were written, if the number in flight that follows goes with the one on the pages. ValueError if a
    counter ran back: the engine was started again, or the pages are in the wrong order.
    """
    if len(scrapes) == 1:
        return [_result(scrapes[0], None, nan, "")]
    return [_result(after, before, *_apart(before, after, seconds)) for before, after in pairwise(scrapes)]


def _apart(before: Scrape, after: Scrape, seconds: float) -> tuple[float, str]:
    """How many seconds lie between two scrapes, NaN for unknown, and who says so."""
    if isfinite(seconds):
        return seconds, ""
    if after.page.moment > before.page.moment:
        return after.page.moment - before.page.moment, " by the moments in the pages"
    files = after.written - before.written
    whole = _histogram(after.page, before.page, HISTOGRAMS["e2e"])
    flying = [page.total("vllm:num_requests_running") + page.total("vllm:num_requests_waiting")
              for page in (before.page, after.page)]  # fmt: skip
    if files >= LEAST and whole is not None and min(flying) / ALIKE <= whole.total / files <= max(flying) * ALIKE:
        return files, " by the times at which the files were written (--interval is more exact)"
    return nan, ""


def _result(scrape: Scrape, before: Scrape | None, seconds: float, source: str) -> Result:
    page, earlier = scrape.page, before.page if before else Page()
    name = scrape.name if before is None else f"{before.name} to {scrape.name}"
    _forward(name, page, earlier)
    histograms = {metric: _histogram(page, earlier, names) for metric, names in HISTOGRAMS.items()}
    reported: Statistics = {}
    wide = {}
    for metric, histogram in histograms.items():
        if histogram is not None:
            bounds = {f"p{p}": histogram.percentile(p) for p in PERCENTILES}
            reported[metric] = {"mean": histogram.mean} | without_missing(
                {key: value for key, (value, *_) in bounds.items()}
            )
            wide[metric] = bounds["p99"][1:]
    totals = _totals(page, earlier, histograms, seconds, before is not None)
    notes = metric_remarks.on_scrape(totals, reported, wide, page, earlier if before else None, seconds, source)
    setup = _setup(page)
    return finish(Draft(TOOL, name, MEANINGS, None, reported, {}, totals, setup, {}, notes, "", checked=False))


def _forward(name: str, page: Page, earlier: Page) -> None:
    for metric, series in earlier.samples.items():
        if metric.endswith(("_total", "_count")) and metric.startswith("vllm:"):
            for labels, value in series.items():
                later = page.samples.get(metric, {}).get(labels)
                if later is not None and later < value:
                    raise ValueError(
                        f"{name}: {metric} ran back from {value:,.10g} to {later:,.10g}: was the engine started again, "
                        "or are the two scrapes in the wrong order?"
                    )


def _histogram(page: Page, earlier: Page, names: tuple[str, ...]) -> Histogram | None:
    for name in names:
        histogram = page.histogram(name)
        if histogram is not None:
            return histogram.less(earlier.histogram(name))
    return None


def _totals(
    page: Page, earlier: Page, histograms: Mapping[str, Histogram | None], seconds: float, since: bool
) -> dict[str, float]:
    """Counts since the start or between two pages, gauges of the later one, and rates if the seconds are known."""

    def counted(*names: str) -> float:
        now, then = page.total(*names), earlier.total(*names)
        return now - (then if isfinite(then) else 0.0)

    totals = {name: counted(*names) for name, names in COUNTERS.items()}
    by_reason = page.by_label("vllm:request_success_total", "finished_reason")
    if by_reason:
        then = earlier.by_label("vllm:request_success_total", "finished_reason")
        by_reason = {reason: value - then.get(reason, 0.0) for reason, value in by_reason.items()}
        totals["requests"] = sum(value for reason, value in by_reason.items() if reason in GOOD or not reason)
        totals["failed"] = sum(by_reason.values()) - totals["requests"]
        totals["aborted"] = by_reason.get("abort", 0.0)
    totals |= {
        "running": page.total("vllm:num_requests_running"),
        "waiting": page.total("vllm:num_requests_waiting"),
        "kv_usage": _mean(page, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    }
    iterations = _histogram(page, earlier, ("vllm:iteration_tokens_total",))
    if iterations is not None:
        totals["tokens_per_step"] = iterations.mean
    for side, name in (("prompt", "vllm:request_prompt_tokens"), ("output", "vllm:request_generation_tokens")):
        lengths = _histogram(page, earlier, (name,))
        if lengths is not None:
            totals[f"mean_{side}_tokens"] = lengths.mean
    totals["prefix_hit_rate"] = totals["prefix_hits"] / (totals["prefix_queries"] or nan)
    now = totals["running"] + totals["waiting"]
    if not since:
        totals["in_flight_now"] = now
    elif seconds > 0:
        totals |= {
            "duration": seconds,
            "requests_per_second": totals.get("requests", nan) / seconds,
            "output_tokens_per_second": totals["output_tokens"] / seconds,
            "prompt_tokens_per_second": totals["prompt_tokens"] / seconds,
            "preemptions_per_second": totals["preemptions"] / seconds,
            "in_flight_now": now,
        }
        whole = histograms["e2e"]
        if whole is not None:
            totals["in_flight"] = whole.total / seconds  # Little's law: lambda W = ended / seconds x mean E2E
    return without_missing(totals)


def _mean(page: Page, *names: str) -> float:
    """The mean of a gauge over engines."""
    for name in names:
        values = list(page.samples.get(name, {}).values())
        if values:
            return sum(values) / len(values)
    return math.nan


def _setup(page: Page) -> dict[str, Any]:
    """Model and cache, from the labels of the page."""
    info = page.labels("vllm:cache_config_info")
    setup: dict[str, Any] = {}
    model = page.labels("vllm:num_requests_running").get("model_name")
    if model:
        setup["model"] = model
    for key, kind in SETTINGS.items():
        if info.get(key) not in (None, "", "None"):
            try:
                setup[key] = kind(info[key])
            except ValueError:
                continue
    engines = page.by_label("vllm:num_requests_running", "engine")
    if len(engines) > 1:
        setup["data_parallel_size"] = len(engines)
    return setup
