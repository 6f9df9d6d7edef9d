"""Forward passes: a step with prompts in it, and a stretch of steps of decodes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop

from course.engine import answer
from course.engine.arrivals import NEVER
from course.engine.executor import Executor, Work, checked_outcome
from course.engine.fast.lives import Lives
from course.engine.fast.stretch import decode
from course.engine.step import StepTime
from course.memory.kvcache import KVCache
from course.policies.base import Policy, Request


class Passes(Lives):
    """An engine that runs steps. stop: when the call under way ends [s]: no step begins then or later."""

    __slots__ = ("_finished", "_several", "stop")

    # What an executor that knows no lengths said of the latest step.
    _finished: Sequence[Request]
    _several: Mapping[Request, int]

    def __init__(
        self, policy: Policy, executor: Executor | StepTime, cache: KVCache | None = None, *, honour_until: bool = True
    ):
        super().__init__(policy, executor, cache, honour_until=honour_until)
        self.stop = NEVER

    def mixed_step(self, tokens: Mapping[Request, int], all_decode: bool, until: float | None) -> None:
        """A step with prompts in it; or one whose decodes are listed one by one.

        all_decode: whether each request that decodes gets its token besides those in `tokens`.
        """
        if not all_decode:
            tokens = self.without_decodes(tokens)
            if not tokens:
                if until is not None or self.counts or not self._decode_once(self.decodes):
                    self.decode_steps(until)
                return
        chunks, decodes, context, prompts = self.admit(tokens)
        if self.simulated:
            seconds = self.simulated.seconds(decodes, context, prompts)
        else:
            seconds = self.run_live(chunks, self.decodes + sum(chunk for _, chunk, _ in chunks))
        self.now += seconds + self.pool.copying() if self.counts else seconds
        self.clock.append(self.now)
        self.last_step_end = self.now
        if self.decodes:
            self.fruitless = 0
            self.context += self.decodes
        self.steps += 1
        self.computed(chunks)
        if not self.simulated:
            self.finish_foretold()
        elif until is not None and self.honour_until and self.goes_on(until):
            self.decode_steps(until, if_there_is_room=True)

    def goes_on(self, until: float) -> bool:
        """Whether steps of decodes alone follow the one that has just ended, by an answer that holds until then."""
        now = self.now
        return (
            until > now and not self.prefilling and now < self.stop
            and self.finishes[0][0] > self.steps and self.arrivals.times[self.arrivals.head] > now
            and (not self.impatient or self.next_leave > now)
        )  # fmt: skip

    def decode_steps(self, until: float | None, *, if_there_is_room: bool = False) -> None:
        """One step of decodes alone, or all up to the next change if the answer holds.

        if_there_is_room: no step at all if the blocks do not suffice for one, in place of a refusal.
        """
        decodes, pool, stop, limit = self.decodes, self.pool, NEVER, 1
        if until is not None and self.honour_until and self.simulated:
            stop = until if until < self.stop else self.stop
            if self.impatient:
                stop = min(stop, self.next_leave)
            if self.batch is not None:
                limit = self.batch.end - self.steps
            else:
                finishes, coming = self.finishes, self.arrivals.times[self.arrivals.head]
                while finishes[0][2] is not None and finishes[0][2].life.leaves_at != finishes[0][0]:
                    heappop(finishes)  # of one that was preempted since
                limit = finishes[0][0] - self.steps
                if coming < stop:
                    stop = coming
        if decodes + self.drafted > self.limits.max_num_batched_tokens and self.batch is None:
            raise answer.too_much(self.limits, 0, decodes + self.drafted, pool, self.members)
        if self._lent:
            pool.lend(self._lent)
        copying = pool.copying() if self.counts else 0.0
        if copying:  # of the first step alone
            limit = 1
        elif limit == 1 and self._decode_once(decodes):
            return
        room = self.phases.steps_left(pool.free, limit)
        if not room:
            if not if_there_is_room:
                decoding = [request for request in self.members if request.life.decodes_from >= 0]
                raise answer.no_blocks(pool, self.due - pool.free, decoding)
            return
        if copying and self.simulated:
            self.now += self.simulated.seconds(decodes, self.context, ()) + copying
            self.clock.append(self.now)
            taken = 1
        elif self.simulated:
            self.now = decode(self.simulated, self.clock, self.now, stop, room, decodes, self.context)
            taken = len(self.clock) - self.steps
        else:
            self.now += self.run_live((), decodes) + copying
            self.clock.append(self.now)
            taken = 1
        self.last_step_end = self.now
        self.context += decodes * taken
        if self.counts:
            pool.decode(self.phases.one_by_one(taken))
        else:
            pool.spend(self.phases.advance(taken))
        self.steps += taken
        self.fruitless = 0
        if not self.simulated:
            self.finish_foretold()
        if self.batch is not None:
            self.batch.after_step()

    def _decode_once(self, decodes: int) -> bool:
        """The same for one step of a step-time model, sooner. False if this way is not open."""
        simulated, blocks = self.simulated, self.due
        if (
            simulated is None or simulated.model is None or self.batch is not None or blocks > self.pool.free
            or decodes > self.limits.max_num_batched_tokens
        ):  # fmt: skip
            return False
        base, slope = simulated.lines[decodes]
        self.now = self.last_step_end = now = self.now + (base + slope * self.context)
        self.clock.append(now)
        self.context += decodes
        self.phases.step += 1
        if blocks:
            self.pool.spend(blocks)
        if self.counts:
            self.pool.note()
        self.steps += 1
        self.fruitless = 0
        return True

    def run_live(self, chunks: Sequence[tuple[Request, int, bool]], tokens: int) -> float:
        """Seconds of a step that the executor really runs. What it says of it is kept for `finish_foretold`.

        chunks: (request, tokens, whether its prompt is complete then). tokens: of the step, the decodes included.
        """
        computed, drafts = {request: chunk for request, chunk, _ in chunks}, self.drafts
        decodes = tuple(request for request in self.members if request.life.decodes_from >= 0)
        table = self.pool.table
        work = Work(
            decodes,
            tuple(computed.items()),
            lambda request: table(request, computed.get(request) or 1 + drafts.get(request, 0)),
            self.now,
            drafts,
        )
        emits = {*decodes, *(request for request, _, complete in chunks if complete)}
        if self.batch is not None:
            emits = {request for request in emits if self.batch.is_open(request)}
        seconds, self._finished, self._several = checked_outcome(
            self.executor.execute(work), self.executor, emits, tokens + self.drafted, self.limits, drafts
        )
        return seconds

    def finish_foretold(self) -> None:
        """What an executor that knows no lengths said of the step that has just ended."""
        if self._lent:
            self.pool.take_back(self._lent)
            self._lent = 0
        for request, tokens in self._several.items():
            if tokens > 1:
                self.emit_more(request, tokens - 1)
        if self.drafts:
            self.undraft()
        for request in self._finished:
            if self.batch is not None:
                self.batch.ended(request)
            else:
                self.leaves_at(request, self.steps)
