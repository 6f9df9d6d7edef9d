"""Continuous batching: the batch is decided anew in every step, in the order of vLLM's V1 scheduler."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

from course.base import settings
from course.policies.base import DECODES, Policy, Request, Schedule, State
from course.policies.registry import Knob, MaxNumSeqs, registered

MaxNumBatchedTokens = Annotated[int, Knob("The most tokens in a step.", 2_048)]
EnableChunkedPrefill = Annotated[bool, Knob("Split prompts that exceed what is left of the step.")]
LongPrefillTokenThreshold = Annotated[int, Knob("The most tokens of one prompt in a step; 0: no limit.")]
SchedulerReserveFullISL = Annotated[bool, Knob("Admit only if the whole prompt fits the free blocks.")]


@registered("continuous")
class Continuous(Policy):
    """Iteration-level batching, first come first served.

    Running requests come first, then waiting ones, while slots, token budget and KV blocks last. Settings are named as
    in vLLM 0.19:
    max_num_seqs: slots. max_num_batched_tokens: tokens a step, at least one for each slot.
    enable_chunked_prefill: a prompt that does not fit the budget left runs in chunks; otherwise it waits for its turn.
    long_prefill_token_threshold: the most tokens one request may take in a step, 0 for no such limit.
    scheduler_reserve_full_isl: admit a request only if its whole prompt fits the free blocks, not only its first chunk.

    Out of blocks, the running request admitted last is preempted, and nobody is admitted in that step.
    Not modelled: prefix caching, asynchronous scheduling. Raises ValueError for settings that contradict each other.
    """

    max_num_batched_tokens: int

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        enable_chunked_prefill: EnableChunkedPrefill = True,
        long_prefill_token_threshold: LongPrefillTokenThreshold = 0,
        scheduler_reserve_full_isl: SchedulerReserveFullISL = True,
    ):
        self.max_num_seqs = max_num_seqs
        self.max_num_batched_tokens = max_num_batched_tokens
        self.enable_chunked_prefill = enable_chunked_prefill
        self.long_prefill_token_threshold = long_prefill_token_threshold
        self.scheduler_reserve_full_isl = scheduler_reserve_full_isl
        self.check_settings()

    def check_settings(self) -> None:
        """Raises ValueError for settings that cannot be, or contradict each other."""
        for name, low in (("max_num_seqs", 1), ("max_num_batched_tokens", 1), ("long_prefill_token_threshold", 0)):
            setattr(self, name, settings.whole(name, getattr(self, name, None), low=low))
        for name in ("enable_chunked_prefill", "scheduler_reserve_full_isl"):
            setattr(self, name, settings.flag(name, getattr(self, name, None)))
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
        sizes = f"max_num_seqs={self.max_num_seqs}, max_num_batched_tokens={self.max_num_batched_tokens}"
        return f"{type(self).__name__}({sizes}{extras})"

    def queue(self, waiting: Sequence[Request]) -> Iterable[Request]:
        """Those who wait, in the order in which they are admitted."""
        return waiting

    def schedule(self, state: State) -> Schedule:
        """Decodes first, then prompts under way, then the queue. The answer holds while nobody waits for the budget."""
        left, cap, slots = (
            self.max_num_batched_tokens - state.decodes,
            self.long_prefill_token_threshold,
            state.free_slots,
        )
        waiting = state.waiting if slots and left else ()
        if not waiting and not state.prefilling:
            return DECODES if state.spare_blocks >= 0 else self.make_room(state)
        plan, tokens, holds = state.plan(), {}, True
        for request in state.prefilling:
            chunk = min(request.remaining, left, cap or left)
            if not chunk:
                break
            if not plan.take(request, chunk, if_fit=chunk):
                return self.make_room(state)
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
        plan, left, cap = state.plan(decodes=False), self.max_num_batched_tokens, self.long_prefill_token_threshold
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
