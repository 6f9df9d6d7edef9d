"""The serving loop as it is meant: ask the policy, check its answer, run the step, hand out the tokens.

Works for any policy and any step time. It touches every running request in every step.
"""

import math
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from numbers import Real

from course.base import settings
from course.engine.loops.arrivals import NEVER, Arrivals
from course.engine.loops.log import Log, check_length, log_from, rows
from course.engine.loops.reserve import check_batch_fits
from course.memory.kvcache import KVCache, blocks_for
from course.policies.base import Limits, Policy, Request, Schedule, State
from course.steptime import LONGEST, Step, StepTime, checked
from course.workload import Workload

_PATIENCE = 20_000  # times in a row that a policy may wait, or preempt, while no token leaves


class _Broken(ValueError):
    """A policy's answer that cannot be executed."""


def check_kinds(schedule: Schedule) -> None:
    """Raises _Broken for a Schedule filled with something else than it should be."""
    if not isinstance(schedule.tokens, Mapping):
        raise _Broken(f"tokens must be a dict of requests to token counts, not {settings.quote(schedule.tokens)}")
    if not isinstance(schedule.preempt, Sequence):
        raise _Broken(f"preempt must be a list of requests, not {settings.quote(schedule.preempt)}")
    if isinstance(schedule.wait_until, bool) or not isinstance(schedule.wait_until, Real):
        raise _Broken(f"wait_until must be a time in seconds, not {settings.quote(schedule.wait_until)}")


def run_stepwise(load: Workload, policy: Policy, limits: Limits, step_time: StepTime, cache: KVCache | None) -> Log:
    """Serve everybody. Raises ValueError, with the step and what to change, for an answer that breaks the rules."""
    return _Loop(load, policy, limits, step_time, cache).run()


class _Loop:
    def __init__(self, load: Workload, policy: Policy, limits: Limits, step_time: StepTime, cache: KVCache | None):
        self.load, self.policy, self.step_time, self.cache = load, policy, step_time, cache
        self.block_size = cache.block_size if cache else 1
        self.free = cache.num_blocks if cache else math.inf
        self.slots, self.budget, self.padded = limits.max_num_seqs, limits.max_num_batched_tokens, limits.padded
        self.padded_prompt = 0  # what a padded batch computes in place of each prompt
        self.output = load.output_tokens.tolist()
        self.arrivals = Arrivals(load)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.clock, self.idle = array("d"), [(0, 0.0)]
        self.tokens, self.stays, self.decodes = _Spans(), _Spans(), _Spans()
        self.chunks: list[tuple[int, int, int, int]] = []
        self.preemptions: list[tuple[int, int, int]] = []
        self.now, self.head = 0.0, 0
        self.answered = 0
        self.waits = self.fruitless = 0  # since the last step, and preemptions since the last token

    def run(self) -> Log:
        times, prompts = self.arrivals.times, self.load.prompt_tokens.tolist()
        while self.answered < len(self.load):
            check_length(self.clock, self.chunks)
            while times[self.head] <= self.now:
                request = self.arrivals.ids[self.head]
                self.waiting.append(Request(request, times[self.head], prompts[request]))
                self.head += 1
            schedule = self.ask()
            try:
                check_kinds(schedule)
                if schedule.tokens or schedule.preempt:
                    self.execute(schedule)
                else:
                    self.wait(schedule, times[self.head])
            except _Broken as error:
                raise ValueError(
                    f"{type(self.policy).__name__}.schedule broke the rules in step {len(self.clock)} "
                    f"(at {self.now:.6g} s): {error}"
                ) from None
        return log_from(
            self.load,
            self.arrivals.arrival,
            self.clock,
            self.idle,
            tokens=self.tokens.rows()[:, :3],
            decodes=self.decodes.rows(),
            chunks=rows(self.chunks, 4),
            stays=self.stays.rows()[:, :3],
            preemptions=rows(self.preemptions, 3),
        )

    def ask(self) -> Schedule:
        known = [(request, request.facts()) for request in (*self.running, *self.waiting)]
        schedule = self.policy.schedule(
            State(
                now=self.now,
                waiting=tuple(self.waiting),
                running=tuple(self.running),
                free_blocks=self.free,
                block_size=self.block_size,
                max_num_seqs=self.slots,
                max_num_batched_tokens=self.budget,
                no_more_arrivals=self.arrivals.times[self.head] == NEVER,
            )
        )
        if not isinstance(schedule, Schedule):
            raise ValueError(
                f"{type(self.policy).__name__}.schedule must return a Schedule, not {settings.quote(schedule)}; "
                "an idle step is Schedule()"
            )
        for request, facts in known:
            if request.facts() != facts:
                raise ValueError(
                    f"{type(self.policy).__name__}.schedule changed a request: its (index, arrival, prompt_tokens, "
                    f"computed, emitted, blocks) were {facts} and are {request.facts()}; a policy may only read them, "
                    "so keep notes of your own elsewhere"
                )
        return schedule

    def wait(self, schedule: Schedule, next_arrival: float) -> None:
        if not schedule.wait_until > self.now:
            when = settings.quote(schedule.wait_until)
            raise _Broken(f"it runs nothing and waits until {when}, which is not later than now")
        wait_until = NEVER if schedule.wait_until > LONGEST else float(schedule.wait_until)
        until = min(wait_until, next_arrival)
        self.waits += 1
        if until == NEVER or self.waits > _PATIENCE:
            raise _Broken(
                f"it runs nothing although {len(self.running)} requests run and {len(self.waiting)} wait, and nothing "
                "will change by waiting: give tokens to at least one request"
            )
        self.now = until
        self.idle.append((len(self.clock), until))

    def execute(self, schedule: Schedule) -> None:
        step = len(self.clock)
        self.waits = 0
        self.preempt(schedule.preempt, step)
        plan = self.admit(schedule.tokens)
        if not plan:
            raise _Broken("it preempts but runs nothing: give tokens to at least one request")
        if self.padded:
            self.check_padded(plan)
        else:
            self.take_blocks(plan)
        self.now += checked(self.step_time, self.note_work(plan, step))
        self.clock.append(self.now)
        for request in self.running:
            self.stays.extend(request.index, step)
        for request, chunk in plan:
            before = request.known
            request.computed += chunk
            if self.padded or request.computed == before:
                if request.emitted < self.output[request.index]:
                    self.tokens.extend(request.index, step)
                request.emitted += 1
                self.fruitless = 0
        self.answer(plan)

    def preempt(self, victims, step: int) -> None:
        for victim in victims:
            if not any(victim is request for request in self.running):
                raise _Broken(f"it preempts {settings.quote(victim)}, which does not run")
            if self.padded:
                raise _Broken(f"it preempts {settings.quote(victim)}, but a padded batch runs to its end")
            self.running.remove(victim)
            self.free += victim.blocks
            self.preemptions.append((victim.index, step, victim.computed))
            victim.blocks = victim.computed = 0
            self.waiting.appendleft(victim)
            self.fruitless += 1
            if self.fruitless > _PATIENCE:
                raise _Broken(
                    f"it has preempted {_PATIENCE:,} times since the last token left, and each time all was lost that "
                    "had been computed: let somebody finish"
                )

    def admit(self, tokens: Mapping[Request, int]) -> list[tuple[Request, int]]:
        """The plan, checked against slots and budget; new requests have moved from waiting to running."""
        known, plan, total = set(self.running) | set(self.waiting), [], 0
        for request, chunk in tokens.items():
            if request not in known:
                raise _Broken(f"it runs {settings.quote(request)}, which neither runs nor waits")
            try:
                chunk = settings.whole(f"the tokens of {settings.quote(request)}", chunk)
            except ValueError as error:
                raise _Broken(str(error)) from None
            if not self.padded and chunk > request.remaining:
                raise _Broken(f"it gives {chunk} tokens to {request!r}, which has {request.remaining} left to compute")
            plan.append((request, chunk))
            total += chunk
        if not self.padded and total > self.budget:
            raise _Broken(f"it runs {total} tokens, and max_num_batched_tokens is {self.budget}")
        running = set(self.running)
        fresh = [request for request in tokens if request not in running]
        if len(self.running) + len(fresh) > self.slots:
            raise _Broken(f"it needs {len(self.running) + len(fresh)} slots, and max_num_seqs is {self.slots}")
        if fresh:
            taken = set(fresh)
            self.waiting = deque(request for request in self.waiting if request not in taken)
            self.running.extend(fresh)
        return plan

    def take_blocks(self, plan) -> None:
        for request, chunk in plan:
            blocks = blocks_for(request.computed + chunk, self.block_size)
            self.free -= blocks - request.blocks
            request.blocks = blocks
        if self.free < 0:
            raise _Broken(
                f"it takes {-self.free} KV blocks more than the cache of {self.cache.num_blocks} has: "
                "preempt somebody, or admit fewer"
            )

    def check_padded(self, plan) -> None:
        if len(plan) != len(self.running):
            raise _Broken(f"it runs {len(plan)} of {len(self.running)} requests, but a padded batch runs as one")
        prompts = max(request.prompt_tokens for request in self.running)
        if plan[0][0].computed == 0:
            self.padded_prompt = prompts
            for request, chunk in plan:
                if chunk != prompts:
                    raise _Broken(f"it gives {chunk} tokens to {request!r}, but prompts are padded to {prompts}")
        elif any(chunk != 1 for _, chunk in plan):
            raise _Broken("it gives other than 1 token to a decode of a padded batch")
        outputs = max(self.output[request.index] for request in self.running)
        check_batch_fits(self.cache, len(self.running), prompts, outputs)

    def note_work(self, plan, step: int) -> Step:
        """The step as a step-time model sees it."""
        decodes = context = 0
        chunks = []
        for request, chunk in plan:
            if request.computed if self.padded else request.emitted and request.remaining == 1:
                known = (self.padded_prompt if self.padded else request.prompt_tokens) + request.emitted
                decodes += 1
                context += known
                self.decodes.extend(request.index, step, known)
            else:
                chunks.append((chunk, request.computed))
                self.chunks.append((request.index, step, chunk, request.computed))
        return Step(decodes, context, tuple(chunks))

    def answer(self, plan) -> None:
        """Send the answers that are complete; a padded batch leaves as one."""
        ended = [request for request, _ in plan if request.emitted >= self.output[request.index]]
        if self.padded and len(ended) < len(self.running):
            return
        gone = set(ended)
        self.running = [request for request in self.running if request not in gone]
        for request in ended:
            self.free += request.blocks
            request.blocks = 0
            self.answered += 1
            self.arrivals.answered(request.index, self.now, self.head)


class _Spans:
    """Ranges of consecutive steps, by request; with what was known in the first of them, if that matters."""

    def __init__(self):
        self.past: list[tuple[int, int, int, int]] = []
        self.open: dict[int, list[int]] = {}

    def extend(self, request: int, step: int, known: int = 0) -> None:
        span = self.open.get(request)
        if span is not None and span[1] == step - 1:
            span[1] = step
            return
        if span is not None:
            self.past.append((request, *span))
        self.open[request] = [step, step, known]

    def rows(self):
        return rows(self.past + [(request, *span) for request, span in self.open.items()], 4)
