"""Continuous batching: the batch is decided anew in every step, in the order of vLLM's V1 scheduler."""

from course.base import settings
from course.memory.kvcache import blocks_for
from course.policies.base import Policy, Schedule, State, blocks_needed


class Continuous(Policy):
    """Iteration-level batching, first come first served: running requests first, then waiting ones, while slots, token
    budget and KV blocks last. Settings are named as in vLLM 0.19:

    max_num_seqs: slots. max_num_batched_tokens: tokens a step, at least one for each slot.
    enable_chunked_prefill: a prompt that does not fit the budget left runs in chunks; otherwise it waits for its turn.
    long_prefill_token_threshold: the most tokens one request may take in a step, 0 for no such limit.
    scheduler_reserve_full_isl: admit a request only if its whole prompt fits the free blocks, not only its first chunk.

    Out of blocks, the running request admitted last is preempted, and nobody is admitted in that step.
    Not modelled: prefix caching, asynchronous scheduling. Raises ValueError for settings that contradict each other.
    """

    def __init__(
        self,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        enable_chunked_prefill: bool = True,
        long_prefill_token_threshold: int = 0,
        scheduler_reserve_full_isl: bool = True,
    ):
        self.max_num_seqs = max_num_seqs
        self.max_num_batched_tokens = max_num_batched_tokens
        self.enable_chunked_prefill = enable_chunked_prefill
        self.long_prefill_token_threshold = long_prefill_token_threshold
        self.scheduler_reserve_full_isl = scheduler_reserve_full_isl
        self.check_settings()

    def check_settings(self) -> None:
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
        return f"Continuous({sizes}{extras})"

    def schedule(self, state: State) -> Schedule:
        budget, free = self.max_num_batched_tokens, state.free_blocks
        tokens, preempt, running = {}, [], list(state.running)

        position = 0
        while position < len(running) and budget > 0:
            request = running[position]
            chunk = min(request.remaining, budget, self.long_prefill_token_threshold or budget)
            while (need := blocks_needed(request, chunk, state.block_size)) > free and len(running) > position:
                victim = running.pop()
                free += victim.blocks
                preempt.append(victim)
            if len(running) == position:  # the request itself was the last one left to preempt
                break
            tokens[request] = chunk
            budget -= chunk
            free -= need
            position += 1

        if preempt:
            return Schedule(tokens, preempt)
        for request in state.waiting:
            if len(running) >= self.max_num_seqs or budget <= 0:
                break
            chunk = min(request.remaining, self.long_prefill_token_threshold or request.remaining)
            if chunk > budget:
                if not self.enable_chunked_prefill:
                    break
                chunk = budget
            reserve = request.remaining if self.scheduler_reserve_full_isl else chunk
            if blocks_for(reserve, state.block_size) > free:
                break
            running.append(request)
            tokens[request] = chunk
            budget -= chunk
            free -= blocks_for(chunk, state.block_size)
        return Schedule(tokens)
