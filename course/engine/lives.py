"""The requests of an engine: who waits, who has a slot, who decodes, and what is written down when that changes.

Nobody is touched but those whose state changes. The counters of a request that decodes are views of the step's number;
its context is part of one running sum, and its blocks are counted by phase (`BlockPool`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from course.engine import answer
from course.engine.arrivals import Arrivals
from course.engine.executor import Simulated
from course.engine.log import Notes
from course.engine.padded import PaddedBatch
from course.memory.block_pool import BlockPool
from course.policies.base import Limits, Request

PATIENCE = 20_000  # times in a row that a policy may wait, or preempt, while no token leaves
LAST = (1 << 62, -1, None)  # the end of the heap of finishes, so that there is always a first


class Lives:
    """The state of an engine's requests, and every way in which it changes."""

    # More attributes than Python keeps in line without slots; with them each is read in half the time.
    __slots__ = (
        "_finishes", "_fruitless", "_queue", "_running", "_sent_back", "_serial", "answered", "arrivals", "batch",
        "context", "decodes", "limits", "notes", "now", "pool", "prefilling", "running_shown", "simulated", "step",
        "waiting_shown",
    )  # fmt: skip

    batch: PaddedBatch | None

    def __init__(self, limits: Limits, pool: BlockPool, simulated: Simulated | None):
        self.limits, self.pool, self.simulated = limits, pool, simulated
        self.arrivals, self.notes = Arrivals(), Notes()
        self.now = 0.0  # seconds; when the step under way ends, where it was advanced to less
        self.step = 0  # the number of the next step
        self.answered = 0
        self.prefilling: dict[Request, None] = {}  # of those that run, the ones that do not decode
        self.decodes = self.context = 0  # sequences that decode, and the tokens they attend to in the next step
        self._queue: dict[Request, None] = {}  # in order of arrival
        self._sent_back: list[Request] = []  # preempted, the head of the queue last
        self._running: dict[Request, None] = {}  # in order of admission
        self.waiting_shown: tuple[Request, ...] | None = ()  # both as a policy sees them; None: they have changed
        self.running_shown: tuple[Request, ...] | None = ()
        self._finishes: list[tuple[int, int, Any]] = [LAST]  # (first step without it, serial number, who)
        self._serial = 0
        self._fruitless = 0  # preemptions since the last token

    @property
    def waiting(self) -> tuple[Request, ...]:
        """Those without a slot, in order of arrival, preempted ones first."""
        if self.waiting_shown is None:
            self.waiting_shown = (*reversed(self._sent_back), *self._queue)
        return self.waiting_shown

    @property
    def running(self) -> tuple[Request, ...]:
        """Those with a slot, in order of admission."""
        if self.running_shown is None:
            self.running_shown = tuple(self._running)
        return self.running_shown

    @property
    def free_slots(self) -> int:
        """Slots that nobody has."""
        return self.limits.max_num_seqs - len(self._running)

    def _without_decodes(self, tokens: Mapping[Request, int]) -> Mapping[Request, int]:
        """The others, of an answer that lists those that decode; whoever decodes and is not listed stops for now."""
        others, listed = {}, 0
        for request, chunk in tokens.items():
            if type(request) is not Request or request._engine is not self:
                raise answer.unknown(request)
            if request._since < 0:
                others[request] = chunk
            else:
                listed += 1
                if chunk != 1 or type(chunk) is not int:
                    answer.chunk_of(request, chunk, 1)
        if listed < self.decodes:
            for request in self.running:
                if request._since >= 0 and request not in tokens:
                    self._pause(request)
        return others

    def _admit(
        self, tokens: Mapping[Request, int]
    ) -> tuple[list[tuple[Request, int, bool]], int, int, list[tuple[int, int]]]:
        """What a step with prompts is made of, once newcomers have their slots and everybody has the blocks.

        (request, tokens, whether its prompt is complete then) of those that do not decode; and the decodes, the tokens
        that they attend to, and the prompts, as `Simulated.seconds` takes them.
        """
        step, pool, queue, running, notes = self.step, self.pool, self._queue, self._running, self.notes
        decodes, context, total = self.decodes, self.context, self.decodes
        chunks, prompts = [], []
        for request, chunk in tokens.items():
            if type(request) is not Request or request._engine is not self:
                raise answer.unknown(request)
            if request._since >= 0:  # named besides, though everybody decodes
                answer.chunk_of(request, chunk, 1)
                continue
            if request in queue:
                del queue[request]
                running[request] = None
                request._admitted, request._c = step, pool.hit(request)
                self.running_shown = None
                self.waiting_shown = None if queue or self._sent_back else ()
            elif request not in running:
                self._readmit(request)
            cached, known = request._c, request._prompt_tokens + request._e
            remaining = known - cached
            if type(chunk) is not int or not 1 <= chunk <= remaining:
                chunk = answer.chunk_of(request, chunk, remaining)
            total += chunk
            pool.take(request, chunk, cached)
            chunks.append((request, chunk, chunk == remaining))
            if chunk < remaining:
                self.prefilling[request] = None
            elif cached or self.prefilling:
                self.prefilling.pop(request, None)
            if remaining == 1 and request._e:  # the last token of a prompt computed again: a decode like any other
                decodes += 1
                context += known
                notes.decodes.extend((request._index, step, step, known))
                request._whole = False
                continue
            prompts.append((chunk, cached))
            if cached or chunk < remaining or not request._whole:
                notes.chunks.extend((request._index, step, chunk, cached))
                request._whole = False
        pool.advance(1)
        limits = self.limits
        if total > limits.max_num_batched_tokens or len(running) > limits.max_num_seqs or pool.free < 0:
            raise answer.too_much(self, total)
        return chunks, decodes, context, prompts

    def _readmit(self, request: Request) -> None:
        """A slot for one that was preempted."""
        if self._sent_back and self._sent_back[-1] is request:
            self._sent_back.pop()
        elif request in self._sent_back:
            self._sent_back.remove(request)
        else:
            raise answer.unknown(request)
        self._running[request] = None
        request._admitted, request._c = self.step, self.pool.hit(request)
        self.waiting_shown = self.running_shown = None

    def _leaves_at(self, request: Request, step: int) -> None:
        request._leave = step
        self._serial += 1
        heappush(self._finishes, (step, self._serial, request))

    def _computed(self, chunks: Sequence[tuple[Request, int, bool]]) -> None:
        """These chunks are in the cache, with the step that just ended.

        Where a prompt is complete, a token of it has left with that step, and from now on it decodes.
        """
        step, pool, simulated = self.step, self.pool, self.simulated
        for request, chunk, complete in chunks:
            request._c = computed = request._c + chunk
            if not complete:
                continue
            request._e += 1
            request._since, request._tokens_from, request._decodes_known = step, step - 1, computed + 1
            self._fruitless = 0
            self.decodes += 1
            self.context += computed + 1
            pool.decode(computed)
            if simulated:
                request._leave = leave = step + simulated.lengths[request._index] - request._e
                self._serial += 1
                heappush(self._finishes, (leave, self._serial, request))

    def _close(self, request: Request, last: int) -> None:
        """Write down its run of tokens and of decodes, which ended with step `last`."""
        if request._tokens_from <= last:  # not where several have just left at once
            self.notes.tokens.extend((request._index, request._tokens_from, last, 1))
        if request._since <= last:
            self.notes.decodes.extend((request._index, request._since, last, request._decodes_known))

    def _leave(self) -> None:
        """Those whose last token left with the step that ended now."""
        step, finishes, notes = self.step, self._finishes, self.notes
        self.running_shown = None
        while finishes[0][0] <= step:
            _, _, request = heappop(finishes)
            if request._leave != step or request._since < 0:
                continue  # of one that was preempted since
            if request._whole:
                notes.plain.extend((request._index, request._tokens_from, step - 1))
            else:
                self._close(request, step - 1)
                notes.stays.extend((request._index, request._admitted, step - 1))
            more = step - request._since
            emitted, computed = request._e + more, request._c + more
            del self._running[request]
            self.decodes -= 1
            self.context -= request._prompt_tokens + emitted
            self.pool.leave(request, computed)
            request._e, request._c, request._since, request._engine = emitted, computed, -1, None
            self.answered += 1
            if self.arrivals.next_turns:
                self.arrivals.answered(request._index, self.now)

    def _pause(self, request: Request) -> None:
        """It stops decoding for now; what it has stays."""
        self._note_prompt(request)
        self._close(request, self.step - 1)
        self.decodes -= 1
        self.context -= request.known
        self.pool.pause(request.computed)
        request._e, request._c = request.emitted, request.computed
        request._since = request._leave = -1
        self.prefilling[request] = None

    def _note_prompt(self, request: Request) -> None:
        """Its life is no plain one any more: write down what a plain one would not."""
        if request._whole:
            request._whole = False
            self.notes.chunks.extend((request._index, request._tokens_from, request._prompt_tokens, 0))

    def _emit_more(self, request: Request, more: int) -> None:
        """So many tokens more left with the step that just ended than the one that the counters went on by."""
        self._note_prompt(request)
        before = self.step - 2
        if request._tokens_from <= before:
            self.notes.tokens.extend((request._index, request._tokens_from, before, 1))
        self.notes.tokens.extend((request._index, self.step - 1, self.step - 1, 1 + more))
        self.notes.decodes.extend((request._index, request._since, self.step - 1, request._decodes_known))
        self.notes.more.extend((request._index, self.step - 1, request.computed, more))
        self.pool.pause(request.computed)
        self.pool.take(request, more)
        request._e, request._c = request.emitted + more, request.computed + more
        request._since = request._tokens_from = self.step
        request._decodes_known = request._c + 1
        self.context += more
        self.pool.decode(request._c)
        if self.pool.free < 0:
            raise ValueError(f"{1 + more} tokens of {request!r} need more KV blocks than are free: emit fewer")

    def _preempt(self, victims: Sequence[Request]) -> None:
        for victim in victims:
            if type(victim) is not Request or victim not in self._running:
                raise answer.not_running(victim)
            if self.batch is not None:
                raise answer.Broken(f"it preempts {victim!r}, but a padded batch runs to its end")
            if victim._since >= 0:
                self._pause(victim)
            self.notes.stays.extend((victim._index, victim._admitted, self.step - 1))
            self.notes.preemptions.extend((victim._index, self.step, victim._c))
            self.pool.release(victim)
            victim._c = 0
            victim._whole = False
            del self._running[victim]
            self.prefilling.pop(victim, None)
            self._sent_back.append(victim)
            self.waiting_shown = self.running_shown = None
            self._fruitless += 1
            if self._fruitless > PATIENCE:
                raise answer.Broken(
                    f"it has preempted {PATIENCE:,} times since the last token left, and each time everything that had "
                    "been computed was lost: let a request finish"
                )
