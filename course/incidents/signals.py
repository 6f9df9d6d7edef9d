"""A paste as the numbers that tell incidents apart. What a paste does not hold is NaN, and fits nothing."""

from __future__ import annotations

import re
from math import nan

import numpy as np

from course.look import reading
from course.results import exposition
from course.results.exposition import Page

NAMES = ("vllm:", "DCGM_", "nginx_ingress")
PRIORITY = re.compile(r"--scheduling-policy[ =]priority")
LINES = 4
"""Lines below which nothing is said about how they differ."""


def signals(text: str) -> dict[str, float]:
    """Every signal by its name; SIGNALS in the tests says what each is. Raises nothing: what cannot be read is NaN."""
    text = reading.ESCAPES.sub("", text)
    return {
        **_of_lines(text),
        **_of_page(exposition.among(text, NAMES)),
        "by_priority": float(bool(PRIORITY.search(text))),
    }


def has_samples(text: str) -> bool:
    """Whether a line of a metrics page is there, of which incidents are made."""
    return bool(exposition.among(reading.ESCAPES.sub("", text), NAMES).samples)


def _of_lines(text: str) -> dict[str, float]:
    """Running, waiting, usage and rates of the periodic lines of one engine."""
    names = ("running", "waiting_share", "idle_share", "usage", "alike_running", "rate_spread", "rate_per_slot")
    rows = [row for name, rows in reading.read(text).rows.items() if name != "page" for row in rows]
    if len(rows) < LINES:
        return dict.fromkeys(names, nan)
    running = np.array([row.running for row in rows], dtype=float)
    waits = np.array([row.waiting > 0 for row in rows])
    rates = np.array([nan if row.output_rate is None else row.output_rate for row in rows])
    usages = [row.usage for row in rows if row.usage is not None]
    most = np.bincount(running.astype(int)).max() if running.max() < 1e6 else 0
    return {
        "running": float(running.mean()),
        "waiting_share": float(waits.mean()),
        "idle_share": float((running == 0).mean()),
        "usage": max(usages, default=nan),
        "alike_running": float(most / len(rows)),
        "rate_spread": float(rates.std() / rates.mean()) if rates.mean() > 0 else nan,
        "rate_per_slot": _slope(running, rates),
    }


def _slope(running: np.ndarray, rates: np.ndarray) -> float:
    """By how many per cent tokens/s grow where 1% more requests run; NaN where never four times as many run."""
    at = (running > 0) & (rates > 0)
    if at.sum() < LINES or running[at].max() < 4 * running[at].min():
        return nan
    return float(np.polyfit(np.log(running[at]), np.log(rates[at]), 1)[0])


def _of_page(page: Page) -> dict[str, float]:
    """Means and ratios of counters and histograms."""

    def mean(name: str) -> float:
        found = page.histogram(name)
        return nan if found is None else found.mean

    def share(part: float, whole: float) -> float:
        return part / whole if whole > 0 else nan

    queue, ttft = mean("vllm:request_queue_time_seconds"), mean("vllm:time_to_first_token_seconds")
    itl = page.histogram("vllm:inter_token_latency_seconds")
    ended = page.histogram("vllm:e2e_request_latency_seconds")
    prompts, answers = page.total("vllm:prompt_tokens_total"), page.total("vllm:generation_tokens_total")
    drafted = page.total("vllm:spec_decode_num_draft_tokens_total")
    client, inside = mean("nginx_ingress_controller_request_duration_seconds"), mean("vllm:e2e_request_latency_seconds")
    routes = _by_route(page)
    return {
        "queue_s": queue,
        "queue_share": share(queue, ttft),
        "ttft_s": ttft,
        "itl_tail": nan if itl is None else share(itl.percentile(99.9)[0], itl.mean),
        "prompt_share": share(prompts, prompts + answers),
        "tokens_a_step": mean("vllm:iteration_tokens_total"),
        "preemptions": nan if ended is None else share(page.total("vllm:num_preemptions_total"), ended.count),
        "drafted_share": share(drafted, drafted + answers),
        "active": page.total("DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
        "dram": page.total("DCGM_FI_PROF_DRAM_ACTIVE"),
        "outside_s": client - inside,
        "outside_share": share(client - inside, client),
        "routes_alike": min(routes) / max(routes) if len(routes) > 1 and min(routes) > 0 else nan,
        "slowest_route_s": max(routes, default=nan),
        "quickest_route_s": min(routes, default=nan),
    }


def _by_route(page: Page) -> list[float]:
    """Seconds to the first byte of each route of the ingress."""
    name = "nginx_ingress_controller_header_duration_seconds"
    sums, counts = (page.by_label(f"{name}_{part}", "route") for part in ("sum", "count"))
    return [sums[route] / counts[route] for route in sums if counts.get(route, 0) > 0]
