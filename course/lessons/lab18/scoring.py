"""Requests within their promise for a dollar: what a design is worth on a day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from course import memory, steptime
from course.engine.fleet import Fleet, Replica
from course.engine.routes import ByClass, ByPrefix, RoundRobin
from course.engine.serving import Engine
from course.engine.step import StepTimeModel
from course.lessons.lab18 import service
from course.lessons.lab18.design import APART, CACHE_AWARE, Design, documents
from course.lessons.lab18.drafted import Drafted, decode_steps
from course.memory.kvcache import KVCache
from course.policies import Policy
from course.policies.base import Request
from course.workload import Workload

RECORDINGS = {"H100": "h100-llama3-8b", "H200": "h200-llama3-8b-flash"}  # the other cards are scaled from the H100


@dataclass(frozen=True)
class Score:
    """What a design did on a day.

    per_dollar: requests within their promise for a dollar. share: of each class within its promise. dollars: for all
    cards until the last answer. seconds: until then. hit_rate: of prompt tokens, found in a prefix cache. ttft, tpot:
    of each request [s], NaN for the TPOT of one token. begun, ended: when it got a slot and its last token [s].
    """

    design: Design
    load: Workload
    per_dollar: float
    share: dict[str, float]
    dollars: float
    seconds: float
    hit_rate: float
    ttft: np.ndarray
    tpot: np.ndarray
    begun: np.ndarray
    ended: np.ndarray

    @property
    def passed(self) -> bool:
        """Whether each class has service.NEED of its requests within its promise."""
        return min(self.share.values()) >= service.NEED

    @property
    def score(self) -> float:
        """per_dollar, or 0 if a class has too few."""
        return self.per_dollar if self.passed else 0.0

    def p95(self, class_: str) -> tuple[float, float]:
        """Of a class, the 95th percentiles of TTFT and TPOT [s]."""
        here = self.load.class_ == class_
        return float(np.percentile(self.ttft[here], 95)), float(np.nanpercentile(self.tpot[here], 95))


class _HalfContext(StepTimeModel):
    """Seconds of a step whose decodes read half the bytes a token: K and V in fp8. Modelled; quality is not."""

    sound = True
    badge = "modelled: half the bytes of KV"

    def __init__(self, step_time: StepTimeModel):
        self.step_time = step_time

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        whole = self.step_time.seconds(decodes, decode_context, tokens, pairs, prefill_context)
        return whole - self.step_time.decode_line(decodes)[1] * decode_context / 2

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        base, slope = self.step_time.decode_line(decodes)
        return base, slope / 2


@lru_cache(maxsize=64)
def step_time(card: str, tensor_parallel_size: int = 1, kv_cache_dtype: str = "auto", drafts: int = 0) -> StepTimeModel:
    """Seconds of a step: recorded on H100 and H200, scaled by data sheets to others, and the rest modelled."""
    recording = steptime.recorded(RECORDINGS.get(card, RECORDINGS["H100"]))
    found: StepTimeModel = recording if card in RECORDINGS else steptime.Scaled(recording, card)
    if tensor_parallel_size > 1:
        found = steptime.Sharded(recording, tensor_parallel_size)
    if kv_cache_dtype == "fp8":
        found = _HalfContext(found)
    return Drafted(found, drafts) if drafts else found


@lru_cache(maxsize=64)
def blocks(card: str, tensor_parallel_size: int = 1, kv_cache_dtype: str = "auto") -> int:
    """KV blocks of an engine, as `course kv` has them with 256 slots and 8,192 tokens a step."""
    return memory.ledger(
        service.MODEL, card, tp=tensor_parallel_size, kv_dtype=kv_cache_dtype, max_model_len=service.LONGEST,
        max_num_seqs=256, max_num_batched_tokens=8_192,
    ).num_blocks  # fmt: skip


def route(design: Design) -> Callable[[Request, Sequence[Replica]], int]:
    """Who decides which engine serves a request: the design's routing."""
    if design.routing == CACHE_AWARE:
        return ByPrefix()
    if design.routing == APART:
        few = documents(design.replicas)
        return ByClass({service.DOCS: range(few), service.CHAT: range(few, design.replicas)})
    return RoundRobin()


def score(design: Design, load: Workload, policy: Callable[[Design], Policy] | None = None) -> Score:
    """Serve a day under a design, engine by engine, and count.

    policy: makes the policy of each engine from the design, in place of vLLM's own scheduler. Raises ValueError as
    `serve` does: for a request that no engine of this design can hold, for one.
    """
    if not isinstance(design, Design):
        raise ValueError(f"score needs a Design, such as Design(card='H100', replicas=3), not {type(design).__name__}")
    k = design.num_speculative_tokens
    steps = step_time(design.card, design.tensor_parallel_size, design.kv_cache_dtype, k)
    cache = KVCache(
        blocks(design.card, design.tensor_parallel_size, design.kv_cache_dtype),
        prefix_caching=design.enable_prefix_caching,
    )
    serving = replace(load, output_tokens=decode_steps(load, k)) if k else load
    make = (lambda one: one.policy) if policy is None else policy
    fleet = Fleet([Engine(make(design), steps, cache) for _ in range(design.replicas)], route(design))
    run = fleet.serve(serving)
    gaps = load.output_tokens - 1
    tpot = np.where(gaps > 0, (run.response - run.first_computed) / np.maximum(gaps, 1), np.nan)
    hit_rate = run.summary()["prefix_hit_rate"] if design.enable_prefix_caching else 0.0
    share, good = {}, 0
    for name, promise in service.PROMISES.items():
        kept = (load.class_ == name) & (run.ttft <= promise.ttft) & ~(tpot > promise.tpot)  # no TPOT, no miss
        good += int(kept.sum())
        share[name] = float(kept.sum() / np.count_nonzero(load.class_ == name))
    end = float(run.response.max())
    dollars = design.dollars_an_hour * end / 3_600
    begun = run.arrival + run.queue_wait
    return Score(design, load, good / dollars, share, dollars, end, hit_rate, run.ttft, tpot, begun, run.response)
