"""Continuous batching: the batch is decided anew in every step, in the order of vLLM's V1 scheduler."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from course.base import settings
from course.memory.block_pool import Plan
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION, release
from course.policies.base import DECODES, Order, Policy, Request, Schedule, State
from course.policies.registry import Knob, MaxNumSeqs, registered
from course.policies.waiting import Waiting

MaxNumBatchedTokens = Annotated[int, Knob("The most tokens in a step.", 2_048)]
EnableChunkedPrefill = Annotated[bool, Knob("Split prompts that exceed what is left of the step.")]
LongPrefillTokenThreshold = Annotated[int, Knob("The most tokens of one prompt in a step; 0: no limit.")]
SchedulerReserveFullISL = Annotated[bool, Knob("Admit only if the whole prompt fits the free blocks.")]
Watermark = Annotated[float, Knob("While anybody runs, admission leaves this share of the blocks free; from 0.33 on.")]
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
    watermark: while anybody runs, who joins must leave int(watermark x (num_blocks + 1)) blocks free besides: vLLM
    counts the block that it keeps for itself. 0.33 has it, with 0 as default; earlier releases have none.
    engine_version: the release whose rules count (`models.engine_defaults.RELEASES`). From 0.33 on the threshold spares
    a request beside which no other runs or waits.

    Out of blocks, the running request admitted last is preempted, and none is admitted in that step.
    Raises ValueError for settings that contradict each other.
    """

    max_num_batched_tokens: int
    budget_changes = False
    """Whether `max_num_batched_tokens` was set since serving began."""

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        enable_chunked_prefill: EnableChunkedPrefill = True,
        long_prefill_token_threshold: LongPrefillTokenThreshold = 0,
        scheduler_reserve_full_isl: SchedulerReserveFullISL = True,
        engine_version: EngineVersion = DEFAULT_ENGINE_VERSION,
        watermark: Watermark = 0.0,
    ):
        self.max_num_seqs = max_num_seqs
        self.max_num_batched_tokens = max_num_batched_tokens
        self.enable_chunked_prefill = enable_chunked_prefill
        self.long_prefill_token_threshold = long_prefill_token_threshold
        self.scheduler_reserve_full_isl = scheduler_reserve_full_isl
        self.engine_version, self.watermark = engine_version, watermark
        self.check_settings()

    def check_settings(self) -> None:
        """Raises ValueError for settings that cannot be, or contradict each other."""
        for name, low in (("max_num_seqs", 1), ("max_num_batched_tokens", 1), ("long_prefill_token_threshold", 0)):
            setattr(self, name, settings.whole(name, getattr(self, name, None), low=low))
        for name in ("enable_chunked_prefill", "scheduler_reserve_full_isl"):
            setattr(self, name, settings.flag(name, getattr(self, name, None)))
        release(str(getattr(self, "engine_version", None)))  # refuses what is no version
        self.watermark = settings.real("watermark", getattr(self, "watermark", None), low=0, high=1)
        if self.watermark == 1:
            raise ValueError(
                "a watermark of 1 would leave all blocks free, and vLLM takes less: give 0.02 to 0.05, or 0 for none"
            )
        if self.watermark and not release(self.engine_version).watermark:
            raise ValueError(
                f"vLLM {self.engine_version} has no watermark: set it to 0, or follow engine_version='0.33'"
            )
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens={self.max_num_batched_tokens} is smaller than one decode for each of "
                f"max_num_seqs={self.max_num_seqs}: raise it to at least {self.max_num_seqs}, or lower max_num_seqs"
            )
        if self.long_prefill_token_threshold and not self.enable_chunked_prefill:
            raise ValueError(
                "long_prefill_token_threshold needs enable_chunked_prefill=True: set it to 0 or turn chunking on"
            )
        vars(self).pop("budget_changes", None)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name == "max_num_batched_tokens":  # set in `schedule`, it may change again: no answer holds any more
            self.budget_changes = True

    def __repr__(self) -> str:
        extras = ""
        if not self.enable_chunked_prefill:
            extras += ", enable_chunked_prefill=False"
        if self.long_prefill_token_threshold:
            extras += f", long_prefill_token_threshold={self.long_prefill_token_threshold}"
        if not self.scheduler_reserve_full_isl:
            extras += ", scheduler_reserve_full_isl=False"
        if release(self.engine_version) is not release(DEFAULT_ENGINE_VERSION):
            extras += f", engine_version={self.engine_version!r}"
        if self.watermark:
            extras += f", watermark={self.watermark:g}"
        sizes = f"max_num_seqs={self.max_num_seqs}, max_num_batched_tokens={self.max_num_batched_tokens}"
        return f"{type(self).__name__}({sizes}{extras})"

    def queue(self, state: State, waiting: Waiting) -> Iterable[Request]:
        """Requests that wait, in the order in which they are admitted; one that is left out waits on.

        A plain list holds for one step: while a request waits that slots and budget would let in, it is asked for
        before every step. An `Order` says how long it holds. waiting: in order of arrival, preempted ones first.
        """
        return Order(waiting)

    def victim(self, state: State, running: Sequence[Request]) -> Request:
        """Which request gives way if blocks are short: the one admitted last, as in vLLM.

        running: in order of admission.
        """
        return running[-1]

    def room(self, state: State) -> int:
        """Tokens of the coming step that prompts may take: what decodes leave of the budget, below 0 for too many."""
        return self.max_num_batched_tokens - state.decodes

    def cap(self, state: State) -> int:
        """The most tokens of one request in the coming step; 0: no such limit."""
        threshold = self.long_prefill_token_threshold
        if not threshold or state.decodes > 1:
            return threshold
        return self.cap_among(len(state.running) + len(state.waiting))

    def cap_among(self, present: int) -> int:
        """The same for a step before which `present` requests run or wait."""
        spared = present == 1 and not release(self.engine_version).threshold_alone
        return 0 if spared else self.long_prefill_token_threshold

    def schedule(self, state: State, *, holds: bool | None = None) -> Schedule:
        """Decodes first, then prompts under way, then the queue. The answer holds while none waits for the budget.

        holds: False: for one step only while a request waits, which is so by default if a subclass has a `schedule` of
        its own, since that may have a rule of its own for those that wait. One that has none says True.
        """
        prefilling, many = state.prefilling, len(state.waiting)
        left = self.room(state)
        if left < 0:
            return self.make_room(state)
        joining = many and left and state.free_slots
        if not joining and not prefilling:
            if state.spare_blocks < 0:
                return self.make_room(state)
            return Schedule(decodes=True) if self.budget_changes or (many and not self._holds(holds)) else DECODES
        plan, tokens, cap = state.plan(), {}, self.cap(state)
        if plan.free < 0:
            return self.make_room(state)
        for request in prefilling:
            chunk = min(request.remaining, left, cap or left)
            if not chunk:
                break
            if not plan.take(request, chunk, if_fit=chunk):
                return self.make_room(state)
            tokens[request] = chunk
            left -= chunk
        begun = len(tokens)
        until = self.admit(state, plan, tokens, left, cap) if left and joining else math.inf if left else None
        if self.budget_changes or (many > len(tokens) - begun and not self._holds(holds)):
            until = None
        if not tokens and until == math.inf:
            return DECODES
        return Schedule(tokens, decodes=True, until=until)

    def _holds(self, holds: bool | None) -> bool:
        """What `schedule` was told of `holds`, else whether no subclass and no object has a `schedule` of its own."""
        return type(self).schedule is Continuous.schedule and "schedule" not in vars(self) if holds is None else holds

    def admit(self, state: State, plan: Plan, tokens: dict[Request, int], left: int, cap: int) -> float | None:
        """Add newcomers to `tokens` while slots, `left` tokens and blocks last; return until when the answer holds."""
        slots, begun, whole = state.free_slots, len(tokens), self.scheduler_reserve_full_isl
        order = self.queue(state, state.waiting)
        holds = order.until if isinstance(order, Order) else None
        kept_free = int(self.watermark * (state.num_blocks + 1)) if self.watermark and plan.free < math.inf else 0
        for request in order.requests if type(order) is Order else order:
            remaining = plan.remaining(request)
            chunk = min(remaining, cap) if cap else remaining
            if chunk > left:
                if not self.enable_chunked_prefill:
                    return None if tokens or not plan.steady else holds
                chunk = left
            if kept_free and (tokens or state.running):
                must_fit = plan.need(request, remaining if whole else chunk) + kept_free
                if must_fit > plan.free:
                    break
            if not plan.take(request, chunk, remaining if whole else chunk):
                break
            tokens[request] = chunk
            left -= chunk
            slots -= 1
            if not left:
                return None
            if not slots:
                return math.inf
        if len(state.waiting) == len(tokens) - begun:
            return math.inf
        return holds if plan.steady else None

    def make_room(self, state: State) -> Schedule:
        """Those that run, in order of admission, if blocks or budget do not suffice for all: victims give way."""
        running, preempt = list(state.running), list[Request]()
        if state.decodes == len(running) <= self.max_num_batched_tokens:  # the same, without a look at each
            plan = state.plan()
            while plan.free < 0:
                victim = self._checked_victim(state, running)
                del running[-1 if victim is running[-1] else running.index(victim)]
                plan.free += plan.need(victim, 1)
                plan.release(victim)
                preempt.append(victim)
            return Schedule(preempt=preempt, decodes=True)
        plan, left, cap = state.plan(decodes=False), self.max_num_batched_tokens, self.cap(state)
        tokens: dict[Request, int] = {}
        place = 0
        while place < len(running) and left:
            request = running[place]
            chunk = min(request.remaining, left, cap or left)
            if not chunk:  # its answer is complete, and its engine takes notice after this step
                place += 1
                continue
            while not plan.take(request, chunk, if_fit=chunk):
                victim = self._checked_victim(state, running)
                position = len(running) - 1 if victim is running[-1] else running.index(victim)
                del running[position]
                plan.release(victim)
                preempt.append(victim)
                left += tokens.pop(victim, 0)
                if position <= place:
                    place -= 1
                if victim is request:
                    break
            else:
                tokens[request] = chunk
                left -= chunk
            place += 1
        return Schedule(tokens, preempt)

    def _checked_victim(self, state: State, running: list[Request]) -> Request:
        """What `victim` returns. Raises ValueError for anything but one of those that run."""
        victim = self.victim(state, running)
        if victim not in running:
            raise ValueError(
                f"{type(self).__name__}.victim must return one of the requests that run, not {settings.quote(victim)}"
            )
        return victim
