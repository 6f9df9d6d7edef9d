"""One loop for every policy: ask it, check its answer, run the step, hand out the tokens.

If an answer says that it holds (`Schedule.until`), all steps up to the next change are taken at once: the next
arrival, the next answer that is complete, a shortage of blocks. No request is touched in them (see `lives`). The clock
moves by adding one step after the other, never by multiplying, so the times are those of the same steps taken one by
one, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping

from course.base import settings
from course.engine import answer
from course.engine.arrivals import NEVER
from course.engine.executor import Executor
from course.engine.fast import tight
from course.engine.fast.padded import PaddedBatch
from course.engine.fast.passes import Passes
from course.engine.log import Log, check_length
from course.engine.step import StepTime
from course.memory.kvcache import KVCache
from course.policies.base import DECODES, NOTHING, Policy, Request
from course.policies.request import fill_remaining


class Engine(Passes):
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

    __slots__ = ()

    def __init__(
        self, policy: Policy, executor: Executor | StepTime, cache: KVCache | None = None, *, honour_until: bool = True
    ):
        super().__init__(policy, executor, cache, honour_until=honour_until)
        self.batch = PaddedBatch(self) if self.limits.padded else None

    def run(self) -> Log:
        """Serve all requests, and return what happened. Raises ValueError if none was submitted."""
        self.close()
        self._serve(NEVER)
        return self.log()

    def advance(self, until: float) -> None:
        """Run every step that begins before `until` [s]; the last of them may end later."""
        until = settings.real("until", until, low=0, high=settings.MAX_SECONDS)
        self._serve(until)
        self.present = max(self.present, until)

    def _serve(self, stop: float) -> None:
        self.must_rest()
        self.serving = True
        self.stop, self.waits = stop, 0
        shortcut = tight.shortcut(self) if stop == NEVER else None
        arrivals, policy, questions = self.arrivals, self.policy, 0
        times, total, slots = arrivals.times, len(arrivals.arrival), self.limits.max_num_seqs
        queue, sent_back, running, prefilling = self.queue, self.sent_back, self.members, self.prefilling
        try:
            while self.answered < total and self.now < stop:
                if times[arrivals.head] <= self.now:
                    self._let_in()
                if self.impatient and self.impatient[0][0] <= self.now:
                    self.give_up()
                    continue
                if shortcut is not None and shortcut.taken():
                    continue
                if not (running or queue or sent_back):
                    self.rest(None, stop)
                    continue
                questions += 1
                if not questions % 1024:
                    check_length(self.clock, self.notes.chunks)
                rejects: Mapping[Request, float | None] = NOTHING
                schedule = self.ask(self.decodes, prefilling, slots - len(running))
                if schedule is not DECODES:
                    schedule = answer.checked(schedule, policy)
                    if schedule.reject:
                        rejects = answer.rejects_of(schedule, self)
                        self.reject(rejects)
                    if schedule.preempt:
                        self.preempt(schedule.preempt)
                    if schedule.drafts:
                        self.draft(schedule)
                if schedule.tokens:
                    self.waits = 0
                    if self.batch is None:
                        self.mixed_step(schedule.tokens, schedule.decodes, schedule.until)
                    else:
                        self.batch.execute(schedule.tokens)
                elif schedule.decodes and self.decodes:
                    self.waits = 0
                    self.decode_steps(schedule.until)
                elif schedule.preempt:
                    raise answer.preempts_only(self.pool, schedule.preempt)
                elif not rejects:  # else the policy is asked again at once, without them
                    self.rest(schedule.until, stop)
                if self.finishes[0][0] <= self.steps:
                    self.let_go()
        except answer.Broken as error:
            raise answer.broken(self, error) from None
        self.serving = False

    def _let_in(self) -> None:
        arrivals, now, queue, filled = self.arrivals, self.now, self.queue, self.filled
        times, ids, head, patience = arrivals.times, arrivals.ids, arrivals.head, self.patience
        while times[head] <= now:
            request = arrivals.request(ids[head], self)
            queue[request] = None
            if patience:
                self.waits_for(request)
            if filled:
                fill_remaining(request, request.life.prompt_tokens - request.life.elsewhere)
            head += 1
        arrivals.head = head
        self.waits = 0
