"""One loop for every policy: ask it, check its answer, run the step, hand out the tokens.

Where an answer says that it holds (`Schedule.until`), all steps up to the next change are taken at once: the next
arrival, the next answer that is complete, a shortage of blocks. Nobody is touched in them. The counters of a request
that decodes are views of the step's number, its context is part of one running sum, and its blocks are counted by
phase (`BlockPool`). The clock moves by adding one step after the other, never by multiplying, so the times are those of
the same steps taken one by one, to the last bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from course.base import settings
from course.engine import answer, tight
from course.engine.arrivals import NEVER, Arrivals
from course.engine.executor import Executor, Simulated, Work, as_executor, checked_outcome
from course.engine.log import Log, Notes, check_length
from course.engine.padded import PaddedBatch
from course.engine.step import LONGEST, StepTime
from course.memory.block_pool import BlockPool
from course.memory.kvcache import KVCache
from course.policies.base import DECODES, Limits, Policy, Request, State
from course.workload import Workload

PATIENCE = 20_000  # times in a row that a policy may wait, or preempt, while no token leaves


class Engine:
    """One engine: a policy that decides, an executor that spends the time, a pool of KV blocks.

    policy: any object with `schedule` and `max_num_seqs`. executor: an Executor, or a step time to simulate with.
    cache: KV blocks, unlimited without one. honour_until: False asks the policy before every step, whatever it says.

        engine = Engine(policies.Continuous(64, 2048), steptime.Roofline("llama-3.1-8b", "H100"), KVCache(20_000))
        engine.submit(Request(arrival=0.0, prompt_tokens=512), output_tokens=128)
        engine.advance(until=1.0)
        run = finish(engine)  # course.engine.serving

    Raises ValueError for a policy whose settings cannot be, and while serving for an answer that breaks the rules.
    """

    # More attributes than Python keeps in line without slots; with them each is read in half the time.
    __slots__ = (
        "_finishes", "_fruitless", "_outcome", "_queue", "_running", "_sent_back", "_serial", "_stop", "_waits",
        "answered", "arrivals", "batch", "cache", "clock", "closed", "context", "decodes", "executor",
        "honour_until", "idle", "last_step_end", "limits", "notes", "now", "policy", "pool", "prefilling",
        "running_shown", "simulated", "state", "step", "waiting_shown",
    )  # fmt: skip

    def __init__(
        self, policy: Policy, executor: Executor | StepTime, cache: KVCache | None = None, *, honour_until: bool = True
    ):
        self.policy, self.limits = policy, Limits.of(policy)
        self.executor, self.cache = as_executor(executor), cache
        self.simulated = self.executor if isinstance(self.executor, Simulated) else None  # knows lengths beforehand
        self.honour_until = honour_until
        self.pool = cache.open() if cache else BlockPool()
        self.arrivals, self.notes, self.state = Arrivals(), Notes(), State(self)
        self.batch = PaddedBatch(self) if self.limits.padded else None

        self.now = 0.0  # seconds
        self.step = 0  # the number of the next step
        self.last_step_end = 0.0
        self.closed = False  # nobody is submitted any more
        self.clock, self.idle = array("d"), [(0, 0.0)]  # when each step ended; (step, when it began) where it was late
        self.answered = 0
        self.prefilling: dict[Request, None] = {}  # of those that run, the ones that do not decode
        self.decodes = self.context = 0  # sequences that decode, and the tokens they attend to in the next step
        self._queue: dict[Request, None] = {}  # in order of arrival
        self._sent_back: list[Request] = []  # preempted, the head of the queue last
        self._running: dict[Request, None] = {}  # in order of admission
        self.waiting_shown: tuple[Request, ...] | None = ()  # both as a policy sees them; None: they have changed
        self.running_shown: tuple[Request, ...] | None = ()
        self._finishes: list[tuple[int, int, Any]] = [tight.LAST]  # (first step without it, serial number, who)
        self._serial = 0
        self._waits = self._fruitless = 0  # since somebody came or a step ran; preemptions since the last token
        self._stop = NEVER

    # Who is served

    def submit(self, request: Request, output_tokens: int | None = None) -> Request:
        """One request, which comes at its arrival. Its `index` becomes the next row.

        output_tokens: what the executor is told of its answer: the length for a simulated one, a bound for others.
        Raises ValueError for a request that was submitted before, or that came before the engine's present.
        """
        if request.index >= 0:
            raise ValueError(f"{request!r} was submitted before: make another one")
        arrival = settings.real("arrival", request.arrival, low=0, high=settings.MAX_SECONDS)
        if arrival < self.now:
            raise ValueError(f"{request!r} arrives at {arrival:g} s, and the engine is at {self.now:g} s already")
        request._prompt_tokens = settings.whole("prompt_tokens", request.prompt_tokens)
        if request.guess is not None:
            settings.real("guess", request.guess, low=1, high=settings.MAX_TOKENS)
        request._index = len(self.arrivals.arrival)
        self.executor.expect(request, output_tokens)
        request._engine = self
        self.arrivals.add(request)
        return request

    def follow(self, load: Workload) -> None:
        """All requests of a workload, before any other. Raises ValueError where requests are known already."""
        self.arrivals.follow(load)
        self.executor.follow(load)

    # What a policy reads of it (see State)

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

    @property
    def no_more_arrivals(self) -> bool:
        """Whether nobody will come unless an answer goes out."""
        return self.closed and self.arrivals.times[self.arrivals.head] == NEVER

    # Serving

    def run(self) -> Log:
        """Serve everybody, and return what happened."""
        self.closed = True
        self._serve(NEVER)
        return self.notes.log(self.arrivals.arrival, self.arrivals.prompt, self.clock, self.idle)

    def advance(self, until: float) -> None:
        """Run every step that begins before `until` [s]; the last of them may end later."""
        self._serve(settings.real("until", until, low=0, high=settings.MAX_SECONDS))

    def _serve(self, stop: float) -> None:
        self._stop, self._waits = stop, 0
        shortcut = tight.shortcut(self) if stop == NEVER else None
        arrivals, policy, state, asked = self.arrivals, self.policy, self.state, 0
        times, total, slots = arrivals.times, len(arrivals.arrival), self.limits.max_num_seqs
        try:
            while self.answered < total and self.now < stop:
                if times[arrivals.head] <= self.now:
                    self._let_in()
                if shortcut is not None and shortcut.taken():
                    continue
                if not (self._running or self._queue or self._sent_back):
                    self._wait(NEVER)
                    continue
                asked += 1
                if not asked % 1024:
                    check_length(self.clock, self.notes.chunks)
                state.now, state.decodes, state.free_slots = self.now, self.decodes, slots - len(self._running)
                state.prefilling = tuple(self.prefilling) if self.prefilling else ()
                schedule = policy.schedule(state)
                if schedule is not DECODES:
                    answer.check(schedule, policy)
                    if schedule.preempt:
                        self._preempt(schedule.preempt)
                if schedule.tokens:
                    self._waits = 0
                    if self.batch is None:
                        self._mixed_step(schedule.tokens, schedule.decodes, schedule.until)
                    else:
                        self.batch.execute(schedule.tokens)
                elif schedule.decodes and self.decodes:
                    self._waits = 0
                    self.decode_steps(schedule.until)
                elif schedule.preempt:
                    raise answer.Broken("it preempts but runs nothing: give tokens to at least one request")
                else:
                    self._wait(NEVER if schedule.until is None else schedule.until)
                if self._finishes[0][0] <= self.step:
                    self._leave()
        except answer.Broken as error:
            raise ValueError(
                f"{type(policy).__name__}.schedule broke the rules in step {self.step} (at {self.now:.6g} s): {error}"
            ) from None

    def _let_in(self) -> None:
        arrivals, now = self.arrivals, self.now
        while arrivals.times[arrivals.head] <= now:
            self._queue[arrivals.request(arrivals.ids[arrivals.head], self)] = None
            arrivals.head += 1
        self._waits = 0
        self.waiting_shown = None

    def _wait(self, until: Any) -> None:
        """Nothing runs until then, or until somebody comes."""
        if not until > self.now:
            raise answer.Broken(f"it runs nothing and waits until {settings.quote(until)}, which is not later than now")
        until = min(NEVER if until > LONGEST else float(until), self.arrivals.times[self.arrivals.head], self._stop)
        self._waits += 1
        if until == NEVER or self._waits > PATIENCE:
            raise answer.Broken(
                f"it runs nothing although {len(self._running)} requests run and {len(self.waiting)} wait, and nothing "
                "will change by waiting: give tokens to at least one request"
            )
        self.now = until
        self.idle.append((self.step, until))

    # Steps

    def _mixed_step(self, tokens: Mapping[Request, int], everybody: bool, until: float | None) -> None:
        """A step with prompts in it; or one whose decodes are listed one by one."""
        if not everybody:
            tokens = self._without_decodes(tokens)
            if not tokens:
                self.decode_steps(until)
                return
        chunks, decodes, context, prompts = self._admit(tokens)
        if self.simulated:
            self.now += self.simulated.seconds(decodes, context, prompts)
        else:
            self.now += self._live([(request, chunk) for request, chunk, _ in chunks])
        self.clock.append(self.now)
        self.last_step_end = now = self.now
        if self.decodes:
            self._fruitless = 0
            self.context += self.decodes
        self.step += 1
        for request, chunk, complete in chunks:
            request._c += chunk
            if complete:
                self._join(request)
        if not self.simulated:
            self._finish_foretold()
        elif (
            until is not None and until > now and self.honour_until and not self.prefilling and now < self._stop
            and self._finishes[0][0] > self.step and self.arrivals.times[self.arrivals.head] > now
        ):  # fmt: skip
            self.decode_steps(until, if_there_is_room=True)

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
                self.waiting_shown = self.running_shown = None
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

    def decode_steps(self, until: float | None, *, if_there_is_room: bool = False) -> None:
        """One step of decodes alone, or all up to the next change where the answer holds.

        if_there_is_room: none at all where the blocks do not suffice for one, in place of a refusal.
        """
        decodes, pool, stop, limit = self.decodes, self.pool, NEVER, 1
        if until is not None and self.honour_until and self.simulated:
            stop = until if until < self._stop else self._stop
            if self.batch is not None:
                limit = self.batch.end - self.step
            else:
                finishes, coming = self._finishes, self.arrivals.times[self.arrivals.head]
                while finishes[0][2] is not None and finishes[0][2]._leave != finishes[0][0]:
                    heappop(finishes)  # of one that was preempted since
                limit = finishes[0][0] - self.step
                if coming < stop:
                    stop = coming
        room = pool.steps_left(limit)
        if not room:
            if not if_there_is_room:
                raise answer.no_blocks(pool, pool.due - pool.free)
            return
        if self.simulated:
            self.now = self.simulated.decode(self.clock, self.now, stop, room, decodes, self.context)
            taken = len(self.clock) - self.step
        else:
            self.now += self._live(())
            self.clock.append(self.now)
            taken = 1
        self.last_step_end = self.now
        self.context += decodes * taken
        pool.advance(taken)
        self.step += taken
        self._fruitless = 0
        if not self.simulated:
            self._finish_foretold()
        if self.batch is not None:
            self.batch.after_step()

    def _live(self, chunks: Sequence[tuple[Request, int]]) -> float:
        """Seconds of a step that the executor really runs. What it says of it is kept for `_finish_foretold`."""
        computed = dict(chunks)
        decodes = tuple(request for request in self._running if request._since >= 0)
        table = self.pool.table
        work = Work(decodes, tuple(chunks), lambda request: table(request, computed.get(request, 1)))
        self._outcome = checked_outcome(self.executor.execute(work), self.executor)
        return self._outcome.seconds

    def _finish_foretold(self) -> None:
        """What an executor that knows no lengths said of the step that has just ended."""
        outcome = self._outcome
        for request, tokens in (outcome.tokens or {}).items():
            if tokens > 1 and request._since >= 0:
                self._emit_more(request, tokens - 1)
        for request in outcome.finished:
            if type(request) is not Request or request._engine is not self or request._since < 0:
                raise ValueError(
                    f"{type(self.executor).__name__} ends the answer of {settings.quote(request)}, which emitted "
                    "nothing in this step"
                )
            if self.batch is not None:
                self.batch.ended(request)
            else:
                self._leaves_at(request, self.step)

    def _leaves_at(self, request: Request, step: int) -> None:
        request._leave = step
        self._serial += 1
        heappush(self._finishes, (step, self._serial, request))

    # Lives

    def _join(self, request: Request) -> None:
        """Its prompt is computed: a token has left with the step that just ended, and from now on it decodes."""
        step = self.step
        request._e += 1
        request._since, request._tokens_from = step, step - 1
        request._decodes_known = request._c + 1
        self._fruitless = 0
        self.decodes += 1
        self.context += request._c + 1
        self.pool.decode(request._c)
        if self.simulated:
            request._leave = leave = step + self.simulated.lengths[request._index] - request._e
            self._serial += 1
            heappush(self._finishes, (leave, self._serial, request))

    def _close(self, request: Request, last: int) -> None:
        """Write down its run of tokens and of decodes, which ended with step `last`."""
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
        self.pool.pause(request.computed)
        self.pool.take(request, more)
        request._e, request._c = request.emitted + more, request.computed + more
        request._since = request._tokens_from = self.step
        request._decodes_known = request._c + 1
        self.context += more
        self.pool.decode(request._c)
        if self.pool.free < 0:
            raise ValueError(f"{1 + more} tokens of {request!r} need more KV blocks than are free: let fewer leave")

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
                    f"it has preempted {PATIENCE:,} times since the last token left, and each time all was lost that "
                    "had been computed: let somebody finish"
                )
