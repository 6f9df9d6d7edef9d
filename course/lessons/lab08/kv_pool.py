"""The scenario of lab 08: one RTX 4090, Llama-3.1-8B, and a KV pool that a busy hour fills.

vLLM 0.19 printed 2,588 blocks of 16 tokens for that pair (LLMServingSim, run of an RTX 4090). Requests have 1,024
prompt tokens and about 512 answer tokens (lognormal, coefficient of variation 1). Step times are modelled: four
constants, each with its formula in `step_time`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.memory.kvcache import KVCache
from course.models import model
from course.steptime import PowerLaw
from course.workload import Workload, lengths

SPEC = model("llama-3.1-8b")
BLOCKS, BLOCK_SIZE = 2_588, 16
TOKENS = BLOCKS * BLOCK_SIZE
POOL_BYTES = TOKENS * SPEC.kv_bytes_per_token
PROMPT, ANSWER, ANSWER_CV = 1_024, 512, 1.0
BUDGET = 2_048
# The data sheet's 1.008 TB/s and 165 TFLOP/s (bf16, dense), times the shares that the course's H100 reached of its own.
BANDWIDTH, FLOPS = 0.90 * 1.008e12, 0.79 * 165e12
PER_SEQUENCE = 50e-6  # seconds of scheduling and sampling; assumed

MHA, GQA, FP8 = "MHA, 32 KV heads", "GQA, 8 KV heads", "GQA, fp8 KV"
BYTES: Mapping[str, int] = {
    MHA: 4 * SPEC.kv_bytes_per_token,
    GQA: SPEC.kv_bytes_per_token,
    FP8: SPEC.kv_bytes_per_token // 2,
}
"""KV bytes a token: as the model is, and with other heads or another type of K and V in the same pool."""

SLOTS = (4, 8, 12, 16, 20, 24, 28, 32, 48, 64, 128, 256)
SHORT = 240  # requests of a run behind a slider; those of the text have 2,000


def start_up_log(length: int = 8_192) -> str:
    """The two lines that vLLM 0.19 prints of so many blocks, with so many tokens as max_model_len."""
    return (
        f"GPU KV cache size: {TOKENS:,} tokens\n"
        f"Maximum concurrency for {length:,} tokens per request: {TOKENS / length:.2f}x"
    )


@lru_cache(maxsize=64)
def requests(rate: float, num_requests: int = 2_000, seed: int = 0) -> Workload:
    """Poisson arrivals at `rate` requests/s; the lengths do not depend on the rate."""
    return Workload.poisson(rate, num_requests, PROMPT, lengths.lognormal(ANSWER, ANSWER_CV), seed)


def engine(max_num_seqs: int = 256) -> policies.Continuous:
    """Continuous batching in vLLM's order, 2,048 tokens a step."""
    return policies.Continuous(max_num_seqs, max(BUDGET, max_num_seqs))


def step_time(kind: str = GQA) -> PowerLaw:
    """Seconds of a step: weights / bandwidth, a constant a sequence, FLOPs of a prompt token, KV bytes / bandwidth."""
    return PowerLaw(
        t0=SPEC.step_weight_bytes / BANDWIDTH,
        c=PER_SEQUENCE,
        alpha=1,
        prefill=2 * SPEC.layer_parameters / FLOPS,
        context=BYTES[kind] / BANDWIDTH,
    )


def cache(kind: str = GQA) -> KVCache:
    """The same bytes of pool in blocks of this kind, but for the one that vLLM keeps for itself."""
    return KVCache(POOL_BYTES // (BLOCK_SIZE * BYTES[kind]) - 1, BLOCK_SIZE)


@dataclass(frozen=True)
class UnderLoad:
    """One run with its pool, and what an operator reads of it."""

    kind: str
    rate: float
    slots: int
    run: Run

    @cached_property
    def tokens_per_second(self) -> float:
        """Output tokens over the whole run, drain included."""
        return float(self.run.workload.output_tokens.sum()) / self.run.makespan

    @cached_property
    def arriving(self) -> float:
        """Seconds from the first arrival to the last. After it a few long answers run nearly alone."""
        return float(np.ptp(self.run.arrival))

    @cached_property
    def arriving_tokens_per_second(self) -> float:
        """Output tokens that left up to the last arrival, over that time."""
        steps = self.run.steps
        return float(steps.useful[steps.end <= self.run.arrival.max()].sum()) / self.arriving

    @cached_property
    def arriving_answers_per_second(self) -> float:
        """Answers that were complete at the last arrival, over the time up to it."""
        return float((self.run.response <= self.run.arrival.max()).sum()) / self.arriving

    @cached_property
    def preemptions(self) -> int:
        """How often a request lost its blocks."""
        return int(self.run.preempted.sum())

    @cached_property
    def recomputed(self) -> float:
        """Share of the computed tokens that had been computed before."""
        steps = self.run.steps
        return float(steps.dropped.sum()) / float(steps.decodes.sum() + steps.prefill_tokens.sum())

    @cached_property
    def in_batch(self) -> float:
        """Sequences in the batch, mean over time."""
        return float(self.run.steps.running @ self.run.steps.seconds) / self.run.makespan

    @cached_property
    def pool_used(self) -> np.ndarray:
        """Share of the blocks that are held, in each step."""
        return self.run.steps.blocks / cache(self.kind).num_blocks

    @cached_property
    def p95_ttft(self) -> float:
        """The 95th percentile of TTFT [s]."""
        return float(np.percentile(self.run.ttft, 95))

    @cached_property
    def longest_gap(self) -> float:
        """The longest time between two tokens of one answer [s]."""
        return float(self.run.itl_weighted[0].max())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the run."""
        return self.run.warnings


@lru_cache(maxsize=512)
def under_load(
    kind: str = GQA, rate: float = 2.0, slots: int = 256, num_requests: int = 2_000, seed: int = 0
) -> UnderLoad:
    """Serve the scenario's requests; ValueError where one of them can never fit the pool."""
    load = requests(rate, num_requests, seed)
    return UnderLoad(kind, rate, slots, serve(load, engine(slots), step_time(kind), cache(kind)))


def hour(kind: str, rate: float, slots: int) -> UnderLoad:
    """What the operator's graphs show: a short run, for a slider."""
    return under_load(kind, rate, slots, SHORT)


def sweep(kind: str = GQA, rate: float = 2.0) -> list[UnderLoad]:
    """Runs of 2,000 requests over SLOTS, as far as more slots still change anything."""
    found: list[UnderLoad] = []
    for slots in SLOTS:
        found.append(under_load(kind, rate, slots))
        if found[-1].run.steps.running.max() < slots:  # nobody ever asked for the last slot
            break
    return found


def hour_rows(result: UnderLoad) -> list[tuple[str, str]]:
    """Rows for a table: what users felt, what the pool did."""
    return [
        ("p95 TTFT", seconds(result.p95_ttft)),
        ("longest gap", seconds(result.longest_gap)),
        ("output, to the last arrival", f"{result.arriving_tokens_per_second:,.0f} tokens/s"),
        ("answers, to the last arrival", f"{result.arriving_answers_per_second:.2f} a second"),
        ("blocks for requests", f"{cache(result.kind).num_blocks:,}"),
        ("pool in use, most", f"{result.pool_used.max():.0%}"),
        ("preemptions", f"{result.preemptions:,}"),
        ("computed twice", f"{result.recomputed:.1%}"),
    ]


@lru_cache(maxsize=8)
def tokens_held(count: int = 2_000, seed: int = 0) -> np.ndarray:
    """Tokens that the sequences of a batch hold, looked at in `count` moments spread evenly: shape (count,), int64.

    A request is met as often as its answer has tokens, so long answers are met more often than they arrive.
    """
    load = requests(2.0, seed=seed)
    ends = np.cumsum(load.output_tokens)
    moments = np.linspace(0, ends[-1] - 1, count).astype(np.int64)
    request = np.searchsorted(ends, moments, side="right")
    said = moments - (ends[request] - load.output_tokens[request])
    return load.prompt_tokens[request] + said
