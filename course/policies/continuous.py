"""Continuous batching: the batch is decided anew in every step, in the order of vLLM's V1 scheduler."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

from course.base import settings
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION, release
from course.policies.base import DECODES, Policy, Request, Schedule, State
from course.policies.registry import Knob, MaxNumSeqs, registered

MaxNumBatchedTokens = Annotated[int, Knob("The most tokens in a step.", 2_048)]
EnableChunkedPrefill = Annotated[bool, Knob("Split prompts that exceed what is left of the step.")]
LongPrefillTokenThreshold = Annotated[int, Knob("The most tokens of one prompt in a step; 0: no limit.")]
SchedulerReserveFullISL = Annotated[bool, Knob("Admit only if the whole prompt fits the free blocks.")]
EngineVersion = Annotated[str, Knob("The release of vLLM whose scheduler is followed, such as 0.19.")]


@registered("continuous")
class Continuous(Policy):
    """Iteration-level batching, first come first served.

    Running requests come first, then waiting ones, while slots, token budget and KV blocks last. Settings are named as
    in vLLM:
    max_num_seqs: slots. max_num_batched_tokens: tokens a step, at least one for each slot.
    enable_chunked_prefill: a prompt that does not fit the budget left runs in chunks; otherwise it waits for its turn.
    long_prefill_token_threshold: the most tokens one request may take in a step, 0 for no such limit.
    scheduler_reserve_full_isl: admit a request only if its whole prompt fits the free blocks, not only its first chunk.
    engine_version: the release whose rules count (`models.engine_defaults.RELEASES`). From 0.33 on the threshold spares
    a request beside which no other runs or waits.

    Out of blocks, the running request admitted last is preempted, and nobody is admitted in that step.
    Not modelled: prefix caching, asynchronous scheduling, the watermark of 0.33. Raises ValueError for settings that
    contradict each other.
    """

    max_num_batched_tokens: int

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        enable_chunked_prefill: EnableChunkedPrefill = True,
        long_prefill_token_threshold: LongPrefillTokenThreshold = 0,
        scheduler_reserve_full_isl: SchedulerReserveFullISL = True,
        engine_version: EngineVersion = DEFAULT_ENGINE_VERSION,
    ):
        self.max_num_seqs = max_num_seqs
        self.max_num_batched_tokens = max_num_batched_tokens
        self.enable_chunked_prefill = enable_chunked_prefill
        self.long_prefill_token_threshold = long_prefill_token_threshold
        self.scheduler_reserve_full_isl = scheduler_reserve_full_isl
        self.engine_version = engine_version
        self.check_settings()

    def check_settings(self) -> None:
        """Raises ValueError for settings that cannot be, or contradict each other."""
        for name, low in (("max_num_seqs", 1), ("max_num_batched_tokens", 1), ("long_prefill_token_threshold", 0)):
            setattr(self, name, settings.whole(name, getattr(self, name, None), low=low))
        for name in ("enable_chunked_prefill", "scheduler_reserve_full_isl"):
            setattr(self, name, settings.flag(name, getattr(self, name, None)))
        release(str(getattr(self, "engine_version", None)))  # refuses what is no version
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens={self.max_num_batched_tokens} is smaller than one decode for each of "
                f"max_num_seqs={self.max_num_seqs}: raise it to at least {self.max_num_seqs}, or lower max_num_seqs"
            )
        if self.long_prefill_token_threshold and not self.enable_chunked_prefill:
            raise ValueError(
                "long_prefill_token_threshold needs enable_chunked_prefill=True: set it to 0 or turn chunking on"
            )

    def __repr__(self) -> str:
        extras = ""
        if not self.enable_chunked_prefill:
            extras += ", enable_chunked_prefill=False"
        if self.long_prefill_token_threshold:
            extras += f", long_prefill_token_threshold={self.long_prefill_token_threshold}"
        if not self.scheduler_reserve_full_isl:
            extras += ", scheduler_reserve_full_isl=False"
        if self.engine_version != DEFAULT_ENGINE_VERSION:
            extras += f", engine_version={self.engine_version!r}"
        sizes = f"max_num_seqs={self.max_num_seqs}, max_num_batched_tokens={self.max_num_batched_tokens}"
        return f"{type(self).__name__}({sizes}{extras})"

    def queue(self, waiting: Sequence[Request]) -> Iterable[Request]:
        """Those who wait, in the order in which they are admitted."""
        return waiting

    def cap(self, present: int) -> int:
        """The most tokens of one request in a step before which `present` requests run or wait; 0: no such limit."""
        threshold = self.long_prefill_token_threshold
        return threshold if not threshold or present > 1 or release(self.engine_version).threshold_alone else 0

    def schedule(self, state: State) -> Schedule:
        """Decodes first, then prompts under way, then the queue. The answer holds while nobody waits for the budget."""
        left, slots = self.max_num_batched_tokens - state.decodes, state.free_slots
        waiting = state.waiting if slots and left else ()
        if not waiting and not state.prefilling:
            return DECODES if state.spare_blocks >= 0 else self.make_room(state)
        cap = self.cap(state.decodes + len(state.prefilling) + len(state.waiting))
        plan, tokens, holds = state.plan(), {}, True
        for request in state.prefilling:
            chunk = min(request.remaining, left, cap or left)
            if not chunk:
                break
            plan.take(request, chunk)
            tokens[request] = chunk
            left -= chunk
        if plan.free < 0:
            return self.make_room(state)

        for request in self.queue(waiting) if left else ():
            remaining = request.remaining
            chunk = min(remaining, cap) if cap else remaining
            if chunk > left:
                if not self.enable_chunked_prefill:
                    holds = False
                    break
                chunk = left
            if not plan.take(request, chunk, remaining if self.scheduler_reserve_full_isl else chunk):
                break
            tokens[request] = chunk
            left -= chunk
            slots -= 1
            if not slots or not left:
                break
        if not tokens:
            return DECODES
        return Schedule(tokens, decodes=True, until=math.inf if holds and left else None)

    def make_room(self, state: State) -> Schedule:
        """The blocks do not suffice for all that run: whoever was admitted last gives way to those before it."""
        plan, left = state.plan(decodes=False), self.max_num_batched_tokens
        cap = self.cap(len(state.running) + len(state.waiting))
        tokens: dict[Request, int] = {}
        preempt: list[Request] = []
        running = list(state.running)
        for position, request in enumerate(state.running):
            chunk = min(request.remaining, left, cap or left)
            while len(running) > position and not plan.fits(request, chunk):
                victim = running.pop()
                plan.release(victim)
                preempt.append(victim)
            if len(running) <= position or not left:  # it was the last one left to preempt, or the budget is spent
                break
            plan.take(request, chunk)
            tokens[request] = chunk
            left -= chunk
        return Schedule(tokens, preempt)
