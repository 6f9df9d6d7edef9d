"""What an operator sees of a run: periodic lines in vLLM's form and its counters, the card's, and those of an ingress.

Written by a simulator, which the first line says. Two sources beside the engine: DCGM's exporter (shares of the time in
which the card, and its memory, were at work) and ingress-nginx (seconds of a request as its client has them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from course.engine.run import Run

EVERY = 10.0  # seconds between two lines, as in vLLM
BLOCK = 16
MEMORY = 3.35e12  # bytes/s of an H100 SXM, of its data sheet
WEIGHTS, TOKEN = 16.06e9, 131_072  # bytes that a step of Llama-3.1-8B reads, and each cached token that it attends to
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75,
           1.0, 1.5, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0)  # fmt: skip
TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)
ROUTE = "route"


@dataclass(frozen=True)
class Seen:
    """One run as its operator sees it.

    passed: when each request reaches the engine [s], for a gateway in front of it. outside: seconds that a client waits
    beside the engine's. host: seconds of each step in which the card waits for its host, within the step's. routes: a
    name for each request, by which the ingress counts. command: how the engine was started.
    """

    run: Run
    passed: np.ndarray | None = None
    outside: float = 0.0
    host: float = 0.0
    routes: Sequence[str] | None = None
    command: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def arrived(self) -> np.ndarray:
        """When each request reaches the engine [s]."""
        return self.run.arrival if self.passed is None else self.passed

    @property
    def end(self) -> float:
        """The last arrival: up to there the page counts [s]."""
        return float(self.run.arrival.max())

    def at(self) -> np.ndarray:
        """The moments of the lines [s]."""
        return np.arange(EVERY, self.end + 1e-9, EVERY)


def running(seen: Seen, at: float) -> int:
    """Requests with a slot."""
    return int(((seen.run.admitted <= at) & (seen.run.response > at)).sum())


def waiting(seen: Seen, at: float) -> int:
    """Requests that the engine has and that hold no slot; those behind a gateway are not the engine's."""
    return int(((seen.arrived <= at) & (seen.run.admitted > at)).sum())


def usage(seen: Seen, at: float) -> float:
    """Share of the KV blocks in use."""
    steps, cache = seen.run.steps, seen.run.cache
    place = int(np.searchsorted(steps.end, at, side="right")) - 1
    if cache is None or place < 0 or running(seen, at) == 0:
        return 0.0
    return float(steps.blocks[place]) / cache.num_blocks


def rate(seen: Seen, values: np.ndarray, at: float) -> float:
    """A column of the steps, added up over the ten seconds before, for each second."""
    end = seen.run.steps.end
    return float(values[(end > at - EVERY) & (end <= at)].sum() / EVERY)


def active(seen: Seen, at: float) -> float:
    """Share of the ten seconds before in which the card computed."""
    steps = seen.run.steps
    return min(1.0, rate(seen, np.maximum(steps.seconds - seen.host, 0.0), at))


def dram(seen: Seen, at: float) -> float:
    """Share of those seconds in which its memory was read: bytes of weights and of the cache over the data sheet's."""
    steps = seen.run.steps
    return min(1.0, rate(seen, (WEIGHTS + TOKEN * steps.decode_context) / MEMORY, at))


def text(seen: Seen) -> str:
    """The page."""
    first = "# written by the simulator of the LLM batching course, in the words of vLLM 0.19, DCGM and ingress-nginx\n"
    command = f"{seen.command}\n" if seen.command else ""
    return first + command + "\n".join(_line(seen, at) for at in seen.at()) + "\n" + _counters(seen)


def _line(seen: Seen, at: float) -> str:
    steps = seen.run.steps
    return (
        f"INFO 11-30 {int(9 + at // 3600):02}:{int(at // 60) % 60:02}:{int(at % 60):02} [loggers.py:259] Engine 000: "
        f"Avg prompt throughput: {rate(seen, steps.prefill_tokens, at):.1f} tokens/s, "
        f"Avg generation throughput: {rate(seen, steps.useful, at):.1f} tokens/s, Running: {running(seen, at)} reqs, "
        f"Waiting: {waiting(seen, at)} reqs, GPU KV cache usage: {100 * usage(seen, at):.1f}%, "
        "Prefix cache hit rate: 0.0%"
    )


def _counters(seen: Seen) -> str:
    """Counters and histograms of what ended up to the last arrival, and of the steps up to there."""
    run, registry = seen.run, CollectorRegistry()
    done = run.response <= seen.end
    steps = run.steps.end <= seen.end

    def histogram(name: str, values: np.ndarray, buckets: Sequence[float] = SECONDS, **labels: str) -> None:
        made = Histogram(name, name, tuple(labels), registry=registry, buckets=buckets)
        child = made.labels(**labels) if labels else made
        for value in values:
            child.observe(float(value))

    def counter(name: str, value: float) -> None:
        Counter(name, name, registry=registry).inc(float(value))

    histogram("vllm:time_to_first_token_seconds", (run.first_computed - seen.arrived)[done])
    histogram("vllm:request_queue_time_seconds", (run.admitted - seen.arrived)[done])
    histogram("vllm:e2e_request_latency_seconds", (run.response - seen.arrived)[done])
    histogram("vllm:request_time_per_output_token_seconds", run.tpot[done & (run.workload.output_tokens > 1)])
    gaps = [np.diff(run.token_times(int(row))) for row in np.flatnonzero(done)]
    histogram("vllm:inter_token_latency_seconds", np.concatenate([*gaps, np.zeros(0)]))
    computed = run.steps.prefill_tokens + run.steps.decodes + run.steps.drafted
    histogram("vllm:iteration_tokens_total", computed[steps], TOKENS)
    counter("vllm:prompt_tokens", run.steps.prefill_tokens[steps].sum())
    counter("vllm:generation_tokens", run.steps.useful[steps].sum())
    counter("vllm:num_preemptions", run.preempted[done].sum())
    if run.steps.drafted.any():
        counter("vllm:spec_decode_num_draft_tokens", run.steps.drafted[steps].sum())
        counter("vllm:spec_decode_num_accepted_tokens", run.steps.accepted[steps].sum())
    at = seen.at()
    for name, share in (("GR_ENGINE", active), ("DRAM", dram)):
        gauge = Gauge(f"DCGM_FI_PROF_{name}_ACTIVE", "Share of the time.", registry=registry)
        gauge.set(round(float(np.mean([share(seen, one) for one in at])), 4))
    names = np.array(seen.routes if seen.routes is not None else ["all"] * len(run))
    whole, first = run.response - run.arrival + seen.outside, run.first_computed - run.arrival + seen.outside
    for name, values in (("request", whole), ("header", first)):
        made = Histogram(f"nginx_ingress_controller_{name}_duration_seconds", name, (ROUTE,), registry=registry,
                         buckets=SECONDS)  # fmt: skip
        for route in sorted(set(names)):
            for value in values[done & (names == route)]:
                made.labels(route).observe(float(value))
    return generate_latest(registry).decode()
