"""What a server counts, under the names and with the meanings of vLLM's V1 engine (vllm/v1/metrics/loggers.py)."""

from __future__ import annotations

import threading
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from course.lm.http.ticket import Ticket
from course.memory.kvcache import KVCache

# vLLM's, and below them steps of a tenth: a toy is quicker than what its buckets were made for.
SECONDS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
           0.4, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)  # fmt: skip
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
LABELS = ("model_name", "engine")
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """Counters, gauges and histograms of one server. `page` is what a scrape gets."""

    def __init__(self, model_name: str, cache: KVCache):
        self.registry = CollectorRegistry()
        self._lock = threading.Lock()

        def made(kind: Any, name: str, text: str, **more: Any) -> Any:
            return kind(f"vllm:{name}", text, LABELS, registry=self.registry, **more).labels(model_name, "0")

        self._running = made(Gauge, "num_requests_running", "Requests that have a slot.")
        self._waiting = made(Gauge, "num_requests_waiting", "Requests that wait for a slot.")
        self._usage = made(Gauge, "kv_cache_usage_perc", "Share of the KV blocks in use; 1 is all.")
        self._preemptions = made(Counter, "num_preemptions", "Preemptions.")
        self._prompt = made(Counter, "prompt_tokens", "Prompt tokens of requests whose prompt is computed.")
        self._generated = made(Counter, "generation_tokens", "Tokens of answers, end tokens included.")
        self._iteration = made(Histogram, "iteration_tokens_total", "Tokens of a step.", buckets=TOKENS)
        self._prompts = made(Histogram, "request_prompt_tokens", "Of a request that ended.", buckets=TOKENS)
        self._answers = made(Histogram, "request_generation_tokens", "Of a request that ended.", buckets=TOKENS)
        seconds: dict[str, Any] = {"buckets": SECONDS}
        self._ttft = made(Histogram, "time_to_first_token_seconds", "Time from arrival to the first token.", **seconds)
        self._itl = made(Histogram, "inter_token_latency_seconds", "Gaps between the tokens of an answer.", **seconds)
        self._tpot = made(
            Histogram,
            "request_time_per_output_token_seconds",
            "Time from the first to the last token / (tokens - 1).",
            **seconds,
        )
        self._e2e = made(Histogram, "e2e_request_latency_seconds", "Time from arrival to the last token.", **seconds)
        self._queue = made(Histogram, "request_queue_time_seconds", "Time from arrival to the first step.", **seconds)
        success = Counter(
            "vllm:request_success", "Requests that ended.", (*LABELS, "finished_reason"), registry=self.registry
        )
        self._success = {
            reason: success.labels(model_name, "0", reason) for reason in ("stop", "length", "abort", "error")
        }
        info = {"block_size": str(cache.block_size), "num_gpu_blocks": str(cache.num_blocks), "engine": "0"}
        Gauge("vllm:cache_config_info", "The KV cache.", tuple(info), registry=self.registry).labels(**info).set(1)

    def page(self) -> bytes:
        """The text of a scrape."""
        with self._lock:
            return generate_latest(self.registry)

    def step(self, tokens: int) -> None:
        """A step of so many tokens begins."""
        self._iteration.observe(tokens)

    def token(self, ticket: Ticket, now: float, alone: bool) -> None:
        """A token of this request is there, now. alone: not together with all others of its answer."""
        with self._lock:
            self._generated.inc()
            if ticket.emitted == 1:
                self._prompt.inc(len(ticket.tokens))
                self._ttft.observe(now - ticket.created)
            elif alone:
                self._itl.observe(now - ticket.last)

    def ended(self, reason: str, ticket: Ticket) -> None:
        """The request has its answer, or gets none any more."""
        with self._lock:
            self._success[reason].inc()
            if reason not in ("stop", "length"):
                return
            self._prompts.observe(len(ticket.tokens))
            self._answers.observe(ticket.emitted)
            self._e2e.observe(ticket.last - ticket.created)
            self._queue.observe(ticket.started - ticket.created)
            if ticket.last > ticket.first:
                self._tpot.observe((ticket.last - ticket.first) / (ticket.emitted - 1))

    def state(self, running: int, waiting: int, usage: float, preempted: int) -> None:
        """The engine between two steps."""
        with self._lock:
            self._running.set(running)
            self._waiting.set(waiting)
            self._usage.set(usage)
            self._preemptions.inc(preempted)
