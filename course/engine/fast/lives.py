"""The requests of an engine: which wait, have a slot or decode, and what is written down when that changes.

A step touches only the requests whose state changes. The counters of one that decodes are views of the step's number;
its context is part of one running sum, and its blocks are counted by phase (`BlockPool`).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice, repeat
from operator import is_
from typing import Any, Protocol

from course.engine import answer
from course.engine.executor import NO_DRAFTS, Executor
from course.engine.intake import Intake
from course.engine.step import StepTime
from course.memory.block_pool import BlockPool
from course.memory.kvcache import KVCache
from course.memory.phases import NoPhases, Phases
from course.policies.base import NOTHING, Policy, Request, Schedule, State
from course.policies.request import Life, empty_remaining, fill_remaining
from course.policies.waiting import Waiting

_ONES = repeat(1)
LAST = (1 << 62, -1, None)  # the end of the heap of finishes, so that there is always a first


class Batch(Protocol):
    """The padded batch of a request-level engine (see `padded`)."""

    end: int
    """The first step without the batch, if lengths are known."""

    def execute(self, tokens: Mapping[Request, Any]) -> None:
        """One step of the batch."""

    def ended(self, request: Request) -> None:
        """The answer of one of its members is complete."""

    def is_open(self, request: Request) -> bool:
        """Whether the answer of this member is not complete yet."""
        ...

    def after_step(self) -> None:
        """All leave once the last answer is complete."""


class Lives(Intake):
    """The state of an engine's requests, and every way in which it changes.

    queue: newcomers, in order of arrival. sent_back: preempted, the head of the queue last. members: those with a
    slot, in order of admission; prefilling: the ones among them that do not decode.
    decoding: the others, but for a padded batch. decodes, context: how many those are, and the tokens that they attend
    to in the next step. phases: their blocks.
    counts: whether the pool is more than a number of equal blocks, and so counts what it holds in each step.
    filled: whether `Request.remaining` is kept of those that do not decode too. It is if nothing but what a request
    computed itself can be in the cache of it.
    waiting: queue and sent_back as a policy sees them. running_shown: the members as it does, None after a change.
    drafts: of the step under way; drafted: their sum.
    finishes: a heap of (first step without it, serial number, request). fruitless: preemptions since the last token.
    """

    # More attributes than Python keeps in line without slots; with them each is read in half the time.
    __slots__ = (
        "_lent", "_serial", "batch", "context", "counts", "decodes", "decoding", "drafted", "drafts", "filled",
        "finishes", "fruitless", "members", "phases", "prefilling", "queue", "running_shown", "sent_back", "waiting",
    )  # fmt: skip

    batch: Batch | None

    def __init__(
        self, policy: Policy, executor: Executor | StepTime, cache: KVCache | None = None, *, honour_until: bool = True
    ):
        super().__init__(policy, executor, cache, honour_until=honour_until)
        self.decodes = self.context = self.fruitless = self._serial = self.drafted = self._lent = 0
        self.drafts: Mapping[Request, int] = NO_DRAFTS
        self.phases = (Phases if self.pool.grows else NoPhases)(self.pool.block_size)
        # What another pool holds does not follow from the log, nor whether a padded batch could reserve.
        self.counts = (
            type(self.pool) is not BlockPool or (self.limits.padded and not self.simulated) or self.executor.verifies
        )
        self.filled = type(self.pool) is BlockPool and not self.limits.padded
        if self.counts:
            self.pool.column = array("q")
        self.queue: dict[Request, None] = {}
        self.sent_back: list[Request] = []
        self.members: dict[Request, None] = {}
        self.prefilling: dict[Request, None] = {}
        self.decoding: set[Request] = set()
        self.waiting = Waiting(self.queue, self.sent_back)
        self.running_shown: tuple[Request, ...] | None = ()
        self.finishes: list[tuple[int, int, Any]] = [LAST]
        self.state = State(self)

    @property
    def running(self) -> tuple[Request, ...]:
        """Those with a slot, in order of admission."""
        if self.running_shown is None:
            self.running_shown = tuple(self.members)
        return self.running_shown

    @property
    def free_slots(self) -> int:
        """Slots that no request has."""
        return self.limits.max_num_seqs - len(self.members)

    @property
    def due(self) -> int:
        """Blocks that the decodes take in the coming step."""
        phases = self.phases
        return phases.counts[phases.step % phases.block_size]

    def without_decodes(self, tokens: Mapping[Request, int]) -> Mapping[Request, int]:
        """The others, of an answer that lists those that decode; one that decodes and is not listed stops for now."""
        decodes = self.decodes
        if len(tokens) == decodes:
            if all(map(is_, tokens.values(), _ONES)) and self.decoding.issuperset(tokens):
                return NOTHING
        elif (
            len(tokens) > decodes and self.decoding.issuperset(islice(tokens, decodes))
            and all(map(is_, islice(tokens.values(), decodes), _ONES))
        ):  # fmt: skip
            return dict(islice(tokens.items(), decodes, None))  # all that decode stand first, as those admitted first
        others, listed = {}, 0
        for request, chunk in tokens.items():
            if type(request) is not Request or request.life.engine is not self:
                raise answer.unknown(request)
            if request.life.decodes_from < 0:
                others[request] = chunk
            else:
                listed += 1
                if chunk != 1 or type(chunk) is not int:
                    answer.chunk_of(request, chunk, 1)
        if listed < self.decodes:
            for request in self.running:
                if request.life.decodes_from >= 0 and request not in tokens:
                    self.pause(request)
        return others

    def admit(
        self, tokens: Mapping[Request, int]
    ) -> tuple[list[tuple[Request, int, bool]], int, int, list[tuple[int, int]]]:
        """What a step with prompts is made of, once newcomers have their slots and every request has its blocks.

        (request, tokens, whether its prompt is complete then) of those that do not decode; and the decodes, the tokens
        that they attend to, and the prompts, as `Simulated.seconds` takes them.
        """
        step, pool, queue, members, notes = self.steps, self.pool, self.queue, self.members, self.notes
        decodes, context, total = self.decodes, self.context, self.decodes + self.drafted
        chunks, prompts = [], []
        blocks = self.phases.advance(1)
        if blocks or self.counts:
            pool.spend(blocks, self.decoding)  # the decodes take their blocks before all others
        for request, chunk in tokens.items():
            if type(request) is not Request or request.life.engine is not self:
                raise answer.unknown(request)
            life = request.life
            if life.decodes_from >= 0:  # named besides, though all that decode do so
                answer.chunk_of(request, chunk, 1)
                continue
            joins = True
            if request in queue:
                del queue[request]
                members[request] = None
                life.admitted = step
                if self.counts or pool.coming:
                    notes.brings(request, pool, step)
                    life.computed_before = pool.admit(request)
                self.running_shown = None
            elif request not in members:
                self._readmit(request)
            else:
                joins = False
            cached, known = life.computed_before, life.prompt_tokens + life.emitted_before
            remaining = known - cached
            if type(chunk) is not int or not 1 <= chunk <= remaining:
                chunk = answer.chunk_of(request, chunk, remaining, joins)
            total += chunk
            pool.take(request, chunk, cached)
            chunks.append((request, chunk, chunk == remaining))
            if chunk < remaining:
                self.prefilling[request] = None
            elif cached or self.prefilling:
                self.prefilling.pop(request, None)
            if remaining == 1 and (life.emitted_before or life.elsewhere):  # of a prompt computed before: a decode
                decodes += 1
                context += known
                notes.decodes.extend((life.row, step, step, known))
                life.plain = False
                continue
            prompts.append((chunk, cached))
            if cached or chunk < remaining or not life.plain:
                notes.chunks.extend((life.row, step, chunk, cached))
                life.plain = False
        if self._lent:
            pool.lend(self._lent)
        limits = self.limits
        if total > limits.max_num_batched_tokens or len(members) > limits.max_num_seqs or pool.free < 0:
            raise answer.too_much(limits, self.free_slots, total, pool, tokens)
        if self.counts:
            pool.note()
        return chunks, decodes, context, prompts

    def _readmit(self, request: Request) -> None:
        """A slot for one that was preempted."""
        if self.sent_back and self.sent_back[-1] is request:
            self.sent_back.pop()
        elif request in self.sent_back:
            self.sent_back.remove(request)
        else:
            raise answer.unknown(request)
        self.members[request] = None
        request.life.admitted = self.steps
        if self.counts:
            request.life.computed_before = self.pool.admit(request)
        self.running_shown = None

    def leaves_at(self, request: Request, step: int) -> None:
        """Its last token leaves with the step before this one."""
        request.life.leaves_at = step
        self._serial += 1
        heappush(self.finishes, (step, self._serial, request))

    def computed(self, chunks: Sequence[tuple[Request, int, bool]]) -> None:
        """These chunks are in the cache, with the step that just ended.

        Where a prompt is complete, a token of it has left with that step, and from now on it decodes.
        """
        step, phases, simulated, decoding = self.steps, self.phases, self.simulated, self.decoding
        for request, chunk, complete in chunks:
            life = request.life
            life.computed_before = computed = life.computed_before + chunk
            if not complete:
                if self.filled:
                    fill_remaining(request, life.prompt_tokens + life.emitted_before - computed)
                continue
            life.emitted_before += 1
            fill_remaining(request, 1)
            life.decodes_from, life.tokens_from, life.known_first = step, step - 1, computed + 1
            self.fruitless = 0
            decoding.add(request)
            self.decodes += 1
            self.context += computed + 1
            phases.decode(computed)
            if simulated:
                life.leaves_at = leave = step + simulated.lengths[life.row] - life.emitted_before
                self._serial += 1
                heappush(self.finishes, (leave, self._serial, request))

    def note_run(self, request: Request, last: int) -> None:
        """Write down its run of tokens and of decodes, which ended with step `last`."""
        life = request.life
        if life.tokens_from <= last:  # unless several have just left at once
            self.notes.tokens.extend((life.row, life.tokens_from, last, 1))
        if life.decodes_from <= last:
            self.notes.decodes.extend((life.row, life.decodes_from, last, life.known_first))

    def let_go(self) -> None:
        """The slots and the blocks of those whose last token left with the step that ended now."""
        step, finishes, notes, phases, pool = self.steps, self.finishes, self.notes, self.phases, self.pool
        turns, gone = self.arrivals.follow_answers, list[tuple[Request, int]]()
        self.running_shown = None
        while finishes[0][0] <= step:
            _, _, request = heappop(finishes)
            life = request.life
            if life.leaves_at != step or life.decodes_from < 0:
                continue  # of one that was preempted since
            if life.plain:
                notes.plain.extend((life.row, life.tokens_from, step - 1))
            else:
                self.note_run(request, step - 1)
                notes.stays.extend((life.row, life.admitted, step - 1))
            more = step - life.decodes_from
            life.emitted_before = emitted = life.emitted_before + more
            life.computed_before = computed = life.computed_before + more
            del self.members[request]
            self.decoding.remove(request)
            self.decodes -= 1
            self.context -= life.prompt_tokens + emitted
            phases.pause(computed)
            gone.append((request, computed))
            life.decodes_from, life.engine = -1, None
            self.answered += 1
            if turns:
                self.arrivals.answered(life.row, self.now)
        pool.release_all(gone)

    def first_token(self, request: Request) -> float:
        """When its first token left, if that was with the last step; else any time before."""
        life = request.life
        latest = life.decodes_from == self.steps and life.emitted_before == 1
        return self.last_step_end if latest else 0.0

    def drop(self, request: Request, outcome: str) -> None:
        """It gives all that it has back, wherever it is, and goes without its whole answer."""
        life, tokens = request.life, 0
        if request in self.members:
            if life.decodes_from >= 0:
                self.pause(request)
            self.notes.stays.extend((life.row, life.admitted, self.steps - 1))
            tokens = request.computed
            self.pool.release(request)
            del self.members[request]
            self.prefilling.pop(request, None)
            self.running_shown = None
        elif request in self.waiting:
            self.sent_back.remove(request) if request in self.sent_back else self.queue.pop(request)
            tokens = self.pool.forget(request)
        else:
            self.arrivals.withdraw(life.row)
        self.gone(request, outcome, tokens)

    def pause(self, request: Request) -> None:
        """It stops decoding for now; what it has stays."""
        life = request.life
        self._note_prompt(life)
        self.note_run(request, self.steps - 1)
        emitted, computed = life.emitted, life.computed
        if self.counts:
            self.pool.take(request, 0, computed)  # what it has filled, it has filled by now
        self.decoding.discard(request)
        self.decodes -= 1
        self.context -= life.prompt_tokens + emitted
        self.phases.pause(computed)
        life.emitted_before, life.computed_before = emitted, computed
        life.decodes_from = life.leaves_at = -1
        if not self.filled:
            empty_remaining(request)
        self.prefilling[request] = None

    def _note_prompt(self, life: Life) -> None:
        """It is no plain life any more: write down what a plain one would not."""
        if life.plain:
            life.plain = False
            self.notes.chunks.extend((life.row, life.tokens_from, life.prompt_tokens, 0))

    def emit_more(self, request: Request, more: int) -> None:
        """So many tokens more left with the step that just ended than the one that the counters went on by."""
        life, last = request.life, self.steps - 1
        self._note_prompt(life)
        if life.tokens_from < last:
            self.notes.tokens.extend((life.row, life.tokens_from, last - 1, 1))
        self.notes.tokens.extend((life.row, last, last, 1 + more))
        self.notes.decodes.extend((life.row, life.decodes_from, last, life.known_first))
        emitted, computed = life.emitted, life.computed
        self.notes.more.extend((life.row, last, computed, more))
        if request not in self.drafts:
            self.notes.drafts.extend((life.row, last, more))
        self.phases.pause(computed)
        self.pool.accept(request, more)
        life.emitted_before, life.computed_before = emitted + more, computed + more
        life.decodes_from = life.tokens_from = self.steps
        life.known_first = life.computed_before + 1
        self.context += more
        self.phases.decode(life.computed_before)
        answer.check_blocks(self.pool, request, 1 + more)

    def draft(self, schedule: Schedule) -> None:
        """The drafts of a step that comes, until `undraft`. Raises answer.Broken."""
        members, tokens = self.members, schedule.tokens
        decodes = {r: None for r in members if r.life.decodes_from >= 0 and (schedule.decodes or r in tokens)}
        self.drafts = drafts = answer.drafts_of(schedule, decodes, self)
        self.drafted, self._lent = sum(drafts.values()), answer.blocks_of(drafts, self.pool.block_size)

    def undraft(self) -> None:
        """The step has ended, and its tokens have left: what was rejected leaves nothing."""
        step, notes, pool = self.steps - 1, self.notes.drafts, self.pool
        for request, count in self.drafts.items():
            notes.extend((request.life.row, step, count))
            pool.cut(request)
        self.drafts, self.drafted = NO_DRAFTS, 0

    def preempt(self, victims: Sequence[Request]) -> None:
        """They lose their slots and all they have computed, and go to the head of the queue."""
        for victim in victims:
            if type(victim) is not Request or victim not in self.members:
                raise answer.not_running(victim)
            if self.batch is not None:
                raise answer.batch_preempted(victim)
            life = victim.life
            if life.decodes_from >= 0:
                self.pause(victim)
            self.notes.stays.extend((life.row, life.admitted, self.steps - 1))
            self.notes.preemptions.extend((life.row, self.steps, self.pool.preempt(victim)))
            life.computed_before = 0
            life.plain = False
            if self.filled:
                fill_remaining(victim, life.prompt_tokens + life.emitted_before)
            del self.members[victim]
            self.prefilling.pop(victim, None)
            self.sent_back.append(victim)
            self.running_shown = None
            self.fruitless += 1
            if self.fruitless > answer.PATIENCE:
                raise answer.fruitless(answer.PATIENCE, (victim,))
