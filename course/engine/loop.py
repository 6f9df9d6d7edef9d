"""One loop for every policy: ask it, check its answer, run the step, hand out the tokens.

Where an answer says that it holds (`Schedule.until`), all steps up to the next change are taken at once: the next
arrival, the next answer that is complete, a shortage of blocks. Nobody is touched in them (see `lives`). The clock
moves by adding one step after the other, never by multiplying, so the times are those of the same steps taken one by
one, to the last bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from heapq import heappop
from typing import Any

import numpy as np

from course.base import settings
from course.engine import answer, tight
from course.engine.arrivals import NEVER
from course.engine.executor import Executor, Simulated, Work, as_executor, checked_outcome
from course.engine.feasible import check_feasible
from course.engine.lives import PATIENCE, Lives
from course.engine.log import Log, check_length
from course.engine.padded import PaddedBatch
from course.engine.step import LONGEST, StepTime
from course.memory.block_pool import BlockPool
from course.memory.kvcache import KVCache
from course.policies.base import DECODES, Limits, Policy, Request, State
from course.workload import Workload


class Engine(Lives):
    """One engine: a policy that decides, an executor that spends the time, a pool of KV blocks.

    policy: any object with `schedule` and `max_num_seqs`. executor: an Executor, or a step time to simulate with.
    cache: KV blocks, unlimited without one. honour_until: False asks the policy before every step, whatever it says.

        engine = Engine(policies.Continuous(64, 2048), steptime.Roofline("llama-3.1-8b", "H100"), KVCache(20_000))
        engine.submit(Request(arrival=0.0, prompt_tokens=512), output_tokens=128)
        engine.advance(until=1.0)
        run = finish(engine)  # course.engine.serving

    Raises ValueError for arguments of another kind and a policy whose settings cannot be; while serving, for an answer
    that breaks the rules. An engine that broke off so, or by an error of the policy or the executor, serves no more.
    """

    __slots__ = (
        "_outcome", "_stop", "_waits", "cache", "clock", "closed", "executor", "honour_until", "idle", "last_step_end",
        "policy", "present", "serving", "state",
    )  # fmt: skip

    def __init__(
        self, policy: Policy, executor: Executor | StepTime, cache: KVCache | None = None, *, honour_until: bool = True
    ):
        if isinstance(policy, type) or not callable(getattr(policy, "schedule", None)):
            raise ValueError(f"an engine needs a policy with a schedule method, not {settings.quote(policy)}")
        if cache is not None and not isinstance(cache, KVCache):
            raise ValueError(f"the cache must be a KVCache or None, not {settings.quote(cache)}")
        executor = as_executor(executor)
        super().__init__(
            Limits.of(policy),
            cache.open() if cache else BlockPool(),
            executor if isinstance(executor, Simulated) else None,  # knows lengths beforehand
        )
        self.policy, self.executor, self.cache = policy, executor, cache
        self.honour_until = settings.flag("honour_until", honour_until)
        self.state, self.batch = State(self), PaddedBatch(self) if self.limits.padded else None
        self.present = 0.0  # the time it was advanced to: all that happens before is decided
        self.last_step_end = 0.0
        self.closed = False  # nobody is submitted any more
        self.serving = False  # from the first step of a call to its end; and for good where it broke off
        self.clock, self.idle = array("d"), [(0, 0.0)]  # when each step ended; (step, when it began) where it was late
        self._waits = 0  # since somebody came or a step ran
        self._stop = NEVER

    def submit(self, request: Request, output_tokens: int | None = None) -> Request:
        """One request, which comes at its arrival. Its `index` becomes the next row.

        output_tokens: what the executor is told of its answer: the length for a simulated one, a bound for others.
        Raises ValueError for a request that can never be served, that was submitted before, or that came before the
        time that the engine was advanced to (a step that began earlier may be under way: it joins after that); while
        the engine serves, and once `run` has served everybody.
        """
        if type(request) is not Request:
            raise ValueError(f"an engine serves requests (policies.Request), not {settings.quote(request)}")
        if request.index >= 0:
            raise ValueError(f"{request!r} was submitted before: make another one")
        self._must_rest()
        if self.closed:
            raise ValueError("this engine has served all requests: submit before `run`, with `advance` in between")
        arrival = settings.real("arrival", request.arrival, low=0, high=settings.MAX_SECONDS)
        if arrival < self.present:
            raise ValueError(f"{request!r} arrives at {arrival:g} s, and the engine is already at {self.present:g} s")
        request._arrival = arrival
        request._prompt_tokens = settings.whole("prompt_tokens", request.prompt_tokens)
        if request.guess is not None:
            settings.real("guess", request.guess, low=1, high=settings.MAX_TOKENS)
        request._index = len(self.arrivals.arrival)
        try:
            self.executor.expect(request, output_tokens)
            known = self.simulated.lengths[-1] if self.simulated else 1
            self._check_feasible(np.array([request._prompt_tokens]), np.array([known]), request._index)
        except Exception:
            if self.simulated:
                del self.simulated.lengths[request._index :]
            request._index = -1
            raise
        request._engine = self
        self.arrivals.add(request)
        return request

    def follow(self, load: Workload) -> None:
        """All requests of a workload, before any other. Raises ValueError where requests are known already."""
        if not isinstance(load, Workload):
            raise ValueError(f"an engine follows a Workload, not {settings.quote(load)}")
        self._must_rest()
        known = load.output_tokens if self.simulated else np.ones_like(load.output_tokens)
        self._check_feasible(load.prompt_tokens, known, 0)
        self.arrivals.follow(load)
        self.executor.follow(load)

    def _check_feasible(self, prompt: np.ndarray, output: np.ndarray, row: int) -> None:
        check_feasible(prompt, output, row, self.policy, self.limits.max_num_batched_tokens, self.cache)

    @property
    def no_more_arrivals(self) -> bool:
        """Whether nobody will come unless an answer goes out."""
        return self.closed and self.arrivals.times[self.arrivals.head] == NEVER

    def run(self) -> Log:
        """Serve everybody, and return what happened. Raises ValueError where nobody was submitted."""
        if not self.arrivals.arrival:
            raise ValueError(
                "no request was submitted, so there is nothing to serve: submit a request, or follow a workload"
            )
        self._must_rest()
        self.closed = True
        self._serve(NEVER)
        return self.notes.log(self.arrivals.arrival, self.arrivals.prompt, self.clock, self.idle)

    def advance(self, until: float) -> None:
        """Run every step that begins before `until` [s]; the last of them may end later."""
        until = settings.real("until", until, low=0, high=settings.MAX_SECONDS)
        self._serve(until)
        self.present = max(self.present, until)

    def _must_rest(self) -> None:
        if self.serving:
            raise ValueError(
                "this engine is in the middle of serving, or stopped there with an error: call submit, advance and run "
                "from outside its policy and its executor, and make another engine after an error"
            )

    def _serve(self, stop: float) -> None:
        self._must_rest()
        self.serving = True
        self._stop, self._waits = stop, 0
        shortcut = tight.shortcut(self) if stop == NEVER else None
        arrivals, policy, state, asked = self.arrivals, self.policy, self.state, 0
        times, total, slots = arrivals.times, len(arrivals.arrival), self.limits.max_num_seqs
        queue, sent_back, running, prefilling = self._queue, self._sent_back, self._running, self.prefilling
        try:
            while self.answered < total and self.now < stop:
                if times[arrivals.head] <= self.now:
                    self._let_in()
                if shortcut is not None and shortcut.taken():
                    continue
                if not (running or queue or sent_back):
                    self._wait(NEVER)
                    continue
                asked += 1
                if not asked % 1024:
                    check_length(self.clock, self.notes.chunks)
                state.now, state.decodes, state.free_slots = self.now, self.decodes, slots - len(running)
                state.prefilling = tuple(prefilling) if prefilling else ()
                schedule = policy.schedule(state)
                if schedule is not DECODES:
                    schedule = answer.checked(schedule, policy)
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
                    raise answer.preempts_only(self, schedule.preempt)
                else:
                    self._wait(NEVER if schedule.until is None else schedule.until)
                if self._finishes[0][0] <= self.step:
                    self._leave()
        except answer.Broken as error:
            raise ValueError(
                f"{type(policy).__name__}.schedule broke the rules in step {self.step} (at {self.now:.6g} s): {error}"
            ) from None
        self.serving = False

    def _let_in(self) -> None:
        arrivals, now, queue = self.arrivals, self.now, self._queue
        times, ids, head = arrivals.times, arrivals.ids, arrivals.head
        while times[head] <= now:
            queue[arrivals.request(ids[head], self)] = None
            head += 1
        arrivals.head = head
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
                f"it runs nothing although {len(self._running)} requests are running and {len(self.waiting)} "
                f"wait, and nothing will change by waiting: give tokens to at least one request"
            )
        self.now = until
        self.idle.append((self.step, until))

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
        self._computed(chunks)
        if not self.simulated:
            self._finish_foretold()
        elif (
            until is not None and until > now and self.honour_until and not self.prefilling and now < self._stop
            and self._finishes[0][0] > self.step and self.arrivals.times[self.arrivals.head] > now
        ):  # fmt: skip
            self.decode_steps(until, if_there_is_room=True)

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
        work = Work(decodes, tuple(chunks), lambda request: table(request, computed.get(request, 1)), self.now)
        self._outcome = checked_outcome(self.executor.execute(work), self.executor)
        return self._outcome.seconds

    def _finish_foretold(self) -> None:
        """What an executor that knows no lengths said of the step that has just ended."""
        outcome, name = self._outcome, type(self.executor).__name__
        for request, tokens in (outcome.tokens or {}).items():
            if not self._emitted_now(request):
                raise ValueError(
                    f"{name} lets {tokens} tokens leave for {settings.quote(request)}, which emitted nothing in this "
                    "step"
                )
            if tokens > 1:
                self._emit_more(request, tokens - 1)
        for request in outcome.finished:
            if not self._emitted_now(request):
                raise ValueError(
                    f"{name} ends the answer of {settings.quote(request)}, which emitted nothing in this step"
                )
            if self.batch is not None:
                self.batch.ended(request)
            elif request._leave == self.step:
                raise ValueError(f"{name} ends the answer of {request!r} twice in one step")
            else:
                self._leaves_at(request, self.step)

    def _emitted_now(self, request: Any) -> bool:
        """Whether a token of it left with the step that has just ended."""
        if type(request) is not Request or request._engine is not self or request._since < 0:
            return False
        return self.batch is None or self.batch.is_open(request)
