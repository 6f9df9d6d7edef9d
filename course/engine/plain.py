"""The serving loop, written to be read: every step touches every request, and nothing is clever.

This is what serving means in this course. `course.engine.serving.serve` gives the same runs, to the last bit, many
times faster; a new feature is written here first. The order of work is that of vLLM V1's scheduler: decodes take their
blocks first, then all others in the policy's order; a forward pass; and what is complete gives everything back.
docs/reading-the-engine.md walks through it.
"""

from array import array
from collections.abc import Sequence

from course.base import settings
from course.engine import answer
from course.engine.executor import Executor, Work, checked_outcome
from course.engine.frame import Frame, Lanes, frame
from course.engine.intake import Intake
from course.engine.log import Log, check_length
from course.engine.step import StepTime
from course.memory.kvcache import KVCache
from course.policies.base import Policy, Request, Schedule, State
from course.policies.request import fill_remaining
from course.policies.waiting import Waiting


class PlainEngine(Intake):
    """An engine to be stepped. Arguments, `submit`, `follow` and `close` as for `course.engine.serving.Engine`.

    async_scheduling: each step is planned before the tokens of the one before are back, as vLLM does by default.

    waiting: requests without a slot: those sent back, then the queue. running: those with one, in order of admission;
    decoding: of these, those a token of which left in the last step; prefilling: the others. unfinished: members of a
    padded batch whose answer is not complete. leaving: those whose answer is complete, and which the plan of the next
    step does not know of yet: they hold slot and blocks until it has run.
    """

    running_shown = None  # a State then asks for `running`

    def __init__(
        self,
        policy: Policy,
        executor: Executor | StepTime,
        cache: KVCache | None = None,
        async_scheduling: bool = False,
    ):
        super().__init__(policy, executor, cache)
        self.async_scheduling, self.leaving = settings.flag("async_scheduling", async_scheduling), list[Request]()
        if async_scheduling and self.limits.padded:
            raise ValueError(
                f"{type(policy).__name__} answers whole batches: it cannot be served with async_scheduling"
            )
        if async_scheduling and (option := self.cache and self.cache.simulated_only):
            raise ValueError(f"{option} with async_scheduling is not modelled: turn one of them off")
        self.queue, self.sent_back = dict[Request, None](), list[Request]()
        self.waiting, self.running = Waiting(self.queue, self.sent_back), list[Request]()
        self.decoding, self.prefilling, self.unfinished = list[Request](), list[Request](), list[Request]()
        self.state, self.lanes, self.fruitless = State(self), Lanes(), 0
        self.pool.column = array("q")

    @property
    def due(self) -> int:
        """Blocks that the decodes take in the coming step."""
        return sum(self.pool.need(request, 1) for request in self.decoding)

    @property
    def context(self) -> int:
        """Tokens that the decodes attend to in the coming step."""
        return sum(request.computed + 1 for request in self.decoding)

    def run(self) -> Log:
        """Serve all, and return what happened. Raises ValueError if nothing was submitted."""
        self.close()
        while not self.done:
            self.step()
        return self.log()

    def step(self, schedule: Schedule | None = None) -> Frame | None:
        """Ask the policy, or take `schedule` in its place; check the answer; run it. None if nothing ran.

        Raises answer.Broken for an answer that breaks a rule, and leaves everything as it was.
        """
        self.let_in()
        with answer.rules(self):
            if schedule is None and (self.waiting or self.running):
                free_slots = self.limits.max_num_seqs - len(self.running)
                schedule = self.ask(len(self.decoding), self.prefilling, free_slots)
            schedule = schedule or Schedule()  # before a request comes, nothing is to be decided
            schedule = answer.checked(schedule, self.policy)
            rejects = answer.rejects_of(schedule, self)
            tokens, drafts = answer.planned(schedule, self)
            self.reject(rejects)
            if rejects and not tokens:
                return None  # the policy is asked again at once, without them
            if not tokens and self.leaving:
                self._let_go(self.leaving, self.steps - 1)
            elif not tokens:
                self.rest(schedule.until)
            shown = self._forward(tokens, schedule.preempt, drafts) if tokens else None
        self.let_in()
        return shown

    def let_in(self) -> None:
        """Those that have come by now wait, and who has no patience left goes. `step` does this, before and after."""
        while self.arrivals.times[self.arrivals.head] <= self.now:
            request = self.arrivals.request(self.arrivals.ids[self.arrivals.head], self)
            self.queue[request] = None
            self.waits_for(request)
            self.arrivals.head += 1
            self.waits = 0
        if self.give_up():
            self.let_in()  # whoever was held back until one of them left

    def _forward(self, tokens: dict[Request, int], victims: Sequence[Request], drafts: dict[Request, int]) -> Frame:
        """One forward pass. tokens: what each request computes, in the order in which they take their blocks.

        drafts: tokens that are verified beside the one of a decode.
        """
        for victim in victims:
            self._preempt(victim)
        decodes = [request for request in self.running if request in self.decoding and request in tokens]
        for request in tokens:
            if request in self.waiting:
                self._admit(request, tokens)
            self.pool.take(request, tokens[request])
        self.pool.lend(lent := answer.blocks_of(drafts, self.pool.block_size))
        self.pool.note()
        chunks = [(request, count) for request, count in tokens.items() if request not in decodes]
        emits = [request for request, count in tokens.items() if request.computed + count >= request.known]
        emits = self.unfinished.copy() if self.limits.padded else emits
        computes = {request: count + drafts.get(request, 0) for request, count in tokens.items()}
        work = Work(
            decodes, chunks, lambda request: self.pool.table(request, computes.get(request, 0)), self.now, drafts
        )
        outcome, total = self.executor.execute(work), sum(computes.values())
        seconds, finished, several = checked_outcome(outcome, self.executor, emits, total, self.limits, drafts)
        seconds += self.pool.copying()
        self.pool.take_back(lent)
        shown = frame(self, seconds, tokens, emits, finished, several, victims)
        self.now = self.last_step_end = shown.end
        self.clock.append(self.now)
        for request, count in tokens.items():
            self.notes.computed(request, self.steps, count, request in decodes)
            request.life.computed_before += count
        for request in emits:
            count = several.get(request, 1)
            if not request.emitted:
                request.life.tokens_from = self.steps
            self.notes.emitted(request, self.steps, count, drafts.get(request, 0))
            if count > 1:  # all but the last are in the cache as well
                self.pool.accept(request, count - 1)
                answer.check_blocks(self.pool, request, count)
            request.life.emitted_before += count
            request.life.computed_before += count - 1
            self.pool.cut(request)
        # A request that decoded and got no turn stands still, and is among those that prefill again.
        self.decoding = [request for request in self.running if request in (tokens if self.limits.padded else emits)]
        order = dict.fromkeys([*self.prefilling, *self.running])
        self.prefilling = [r for r in order if r in self.running and r not in self.decoding and r not in self.leaving]
        self._leave(finished)
        self.steps, self.waits, self.fruitless = self.steps + 1, 0, 0 if emits else self.fruitless
        check_length(self.clock, self.notes.chunks)
        return shown

    def first_token(self, request: Request) -> float:
        """When its first token left."""
        return self.clock[request.life.tokens_from]

    def drop(self, request: Request, outcome: str) -> None:
        """It gives all that it has back, wherever it is, and goes without its whole answer."""
        tokens = 0
        if request in self.running:
            self.notes.stay(request, self.steps - 1)
            tokens = request.computed
            self.pool.release(request)
            self.running.remove(request)
            self.decoding = [other for other in self.decoding if other is not request]
            self.prefilling = [other for other in self.prefilling if other is not request]
        elif request in self.waiting:
            self.sent_back.remove(request) if request in self.sent_back else self.queue.pop(request)
            tokens = self.pool.forget(request)
        else:
            self.arrivals.withdraw(request.index)
        self.gone(request, outcome, tokens)

    def _preempt(self, victim: Request) -> None:
        """It loses its slot and what it has computed, and goes to the head of the queue."""
        self.notes.preempted(victim, self.steps, self.pool.preempt(victim))
        victim.life.computed_before = 0
        self.running.remove(victim)
        self.fruitless += 1
        if victim not in self.leaving:
            self.sent_back.append(victim)
            return
        self.leaving.remove(victim)
        victim.life.engine, self.answered = None, self.answered + 1

    def _admit(self, request: Request, tokens: dict[Request, int]) -> None:
        """It gets a slot and what is in the cache of it, perhaps more than was planned on."""
        self.sent_back.remove(request) if request in self.sent_back else self.queue.pop(request)
        self.running.append(request)
        request.life.admitted = self.steps
        if not self.limits.padded:
            self.notes.brings(request, self.pool, self.steps)
            request.life.computed_before = self.pool.admit(request)
            tokens[request] = min(tokens[request], request.remaining)
            return
        self.unfinished.append(request)  # it computes its whole prompt, and padding
        if self.simulated and self.cache:  # blocks for the longest prompt and the longest answer
            self.pool.reserve(request, tokens[request] + self.simulated.longest(tokens) - 1)

    def _leave(self, finished: Sequence[Request]) -> None:
        """Requests whose answer is complete give back what they have; a padded batch when the last one is complete."""
        if self.limits.padded:
            self.unfinished = [request for request in self.unfinished if request not in finished]
            finished = [] if self.unfinished else self.running.copy()
        for request in finished:
            self.decoding.remove(request)
            self.arrivals.answered(request.index, self.now)  # its next turn comes, if it has one
        leavers, self.leaving = (self.leaving, list(finished)) if self.async_scheduling else (list(finished), [])
        self._let_go(leavers, self.steps)
        for request in self.leaving:
            fill_remaining(request, 0)

    def _let_go(self, leavers: Sequence[Request], last: int) -> None:
        """They give back what they have, which they held up to this step."""
        for request in [request for request in self.running if request in leavers]:
            self.notes.stay(request, last)
            self.pool.release(request)
            self.running.remove(request)
            request.life.engine, self.answered = None, self.answered + 1
        self.leaving = [request for request in self.leaving if request not in leavers]
