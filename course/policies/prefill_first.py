"""Prefill first: a step is prompts alone or decodes alone, and new prompts go first, in the order of SGLang."""

import math

from course.base import settings
from course.memory.block_pool import Plan
from course.policies.base import DECODES, Policy, Request, Schedule, State
from course.policies.continuous import EnableChunkedPrefill, MaxNumBatchedTokens
from course.policies.registry import MaxNumSeqs, registered


@registered("prefill-first")
class PrefillFirst(Policy):
    """Iteration-level batching in which new prompts go first and decodes wait, SGLang's default.

    As in SGLang 0.5.9 without --enable-mixed-chunk (managers/scheduler.py, schedule_policy.py): while a prompt can run,
    a step computes prompts only, first come first served; else each that decodes gets one token. Settings have vLLM's
    names, SGLang's names in brackets:
    max_num_seqs (max_running_requests): slots. max_num_batched_tokens (chunked_prefill_size): prompt tokens of a step,
    at least one for each slot here, though a step of decodes has no such limit in SGLang.
    enable_chunked_prefill: the prompt that does not fit what is left of a step runs in chunks, one such prompt at a
    time, and its next chunk comes in the next step; otherwise it waits for a step of its own.

    A prompt is admitted if all of it fits the free blocks, beside one more token of each that decodes (SGLang holds
    back a share of their max_new_tokens, which is not modelled). Out of blocks for decodes, those with the fewest
    answer tokens are preempted, the longest prompt first among equals. Prefixes are not modelled.

    Raises ValueError for settings that contradict each other.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        enable_chunked_prefill: EnableChunkedPrefill = True,
    ):
        self.max_num_seqs, self.max_num_batched_tokens = max_num_seqs, max_num_batched_tokens
        self.enable_chunked_prefill = enable_chunked_prefill
        self.check_settings()

    def check_settings(self) -> None:
        """Raises ValueError for settings that cannot be, or contradict each other."""
        for name in ("max_num_seqs", "max_num_batched_tokens"):
            setattr(self, name, settings.whole(name, getattr(self, name, None)))
        self.enable_chunked_prefill = settings.flag(
            "enable_chunked_prefill", getattr(self, "enable_chunked_prefill", None)
        )
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens={self.max_num_batched_tokens} is smaller than one decode for each of "
                f"max_num_seqs={self.max_num_seqs}: raise it to at least {self.max_num_seqs}, or lower max_num_seqs"
            )

    def __repr__(self) -> str:
        sizes = f"max_num_seqs={self.max_num_seqs}, max_num_batched_tokens={self.max_num_batched_tokens}"
        return f"PrefillFirst({sizes}{'' if self.enable_chunked_prefill else ', enable_chunked_prefill=False'})"

    def schedule(self, state: State) -> Schedule:
        """Prompts if there are any that can run, else a token for all others."""
        begun = [request for request in state.prefilling if not _decodes(request)]
        paused = {request: 1 for request in state.prefilling if _decodes(request)}
        plan = state.plan()
        if plan.free < 0 or not all(plan.take(request, 1, if_fit=1) for request in paused):
            return self.make_room(state, begun)
        tokens = self.prompts(state, begun, plan) if begun or (state.waiting and state.free_slots) else {}
        if tokens:
            return Schedule(tokens)
        if not paused and not state.decodes:
            return self.idle(state)
        # What waits has no slot or no blocks, and gets neither before a request leaves: decodes take blocks.
        if state.waiting and not plan.steady:
            return Schedule(paused, decodes=True)
        return Schedule(paused, decodes=True, until=math.inf) if paused else DECODES

    def prompts(self, state: State, begun: list[Request], plan: Plan) -> dict[Request, int]:
        """The tokens of each prompt in this step: the ones under way, then the queue, while budget and blocks last."""
        left, slots = int(self.max_num_batched_tokens), state.free_slots
        tokens: dict[Request, int] = {}
        for request in begun:
            chunk = min(request.remaining, left)
            if not chunk or not plan.fits(request, chunk):
                return tokens
            plan.take(request, chunk)
            tokens[request] = chunk
            left -= chunk
        for request in state.waiting if slots else ():
            remaining = plan.remaining(request)
            chunk = min(remaining, left)
            if chunk < remaining and not self.enable_chunked_prefill:
                break
            if not chunk or not plan.take(request, chunk, remaining):
                break
            tokens[request] = chunk
            left -= chunk
            slots -= 1
            if not slots or not left:
                break
        return tokens

    def make_room(self, state: State, begun: list[Request]) -> Schedule:
        """The blocks do not suffice for all that decode: the request with the fewest answer tokens gives way.

        A prompt under way gives way to the last that decodes.
        """
        plan = state.plan(decodes=False)
        decoding = [request for request in state.running if _decodes(request)]
        order = sorted(decoding, key=lambda request: (request.emitted, -request.prompt_tokens), reverse=True)
        preempt: list[Request] = []
        while sum(plan.need(request, 1) for request in order) > plan.free:
            victim = begun.pop() if begun and len(order) == 1 else order.pop()
            plan.release(victim)
            preempt.append(victim)
        left = set(order)
        return Schedule({request: 1 for request in decoding if request in left}, preempt)

    def idle(self, state: State) -> Schedule:
        """Nothing runs. ValueError if a request waits that no step can ever take."""
        if state.waiting:
            first = state.waiting[0]
            raise ValueError(
                f"request {first.index} has {first.remaining} tokens to compute at once, and max_num_batched_tokens is "
                f"{self.max_num_batched_tokens}: raise it, or turn enable_chunked_prefill on"
            )
        return Schedule()


def _decodes(request: Request) -> bool:
    """Whether all that it has to compute is its last token: one that waited through a step of prompts still decodes."""
    return request.emitted > 0 and request.remaining == 1
