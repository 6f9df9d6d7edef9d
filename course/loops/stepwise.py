"""The serving loop as it is meant: ask the policy, check its answer, run the step, hand out the tokens.

Works for any policy and any step time. It touches every running request in every step.
"""

import math
from array import array
from collections import deque
from collections.abc import Mapping

from .. import settings
from ..kvcache import KVCache, blocks_for
from ..policies.base import Policy, Request, Schedule, State
from ..steptime import Step, StepTime, checked
from ..workload import Workload
from .arrivals import NEVER, Arrivals
from .log import Log, log_from
from .reserve import check_batch_fits


class _Broken(ValueError):
    """A policy's answer that cannot be executed."""


def run_stepwise(load: Workload, policy: Policy, step_time: StepTime, cache: KVCache | None) -> Log:
    """Serve everybody. Raises ValueError, with the step and what to change, for an answer that breaks the rules."""
    return _Loop(load, policy, step_time, cache).run()


class _Loop:
    def __init__(self, load: Workload, policy: Policy, step_time: StepTime, cache: KVCache | None):
        self.load, self.policy, self.step_time, self.cache = load, policy, step_time, cache
        self.block_size = cache.block_size if cache else 1
        self.free = cache.num_blocks if cache else math.inf
        self.slots = settings.whole("max_num_seqs", policy.max_num_seqs)
        self.budget = policy.max_num_batched_tokens
        self.output = load.output_tokens.tolist()
        self.arrivals = Arrivals(load)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.admitted = [math.nan] * len(load)
        self.preempted = [0] * len(load)
        self.runs: dict[int, list[int]] = {}  # request: [first, last] step of its run of tokens under way
        self.past_runs: list[tuple[int, int, int]] = []
        self.clock, self.stretches = array("d"), []
        self.now, self.head = 0.0, 0
        self.answered = 0

    def run(self) -> Log:
        times, prompts = self.arrivals.times, self.load.prompt_tokens.tolist()
        while self.answered < len(self.load):
            while times[self.head] <= self.now:
                request = self.arrivals.ids[self.head]
                self.waiting.append(Request(request, times[self.head], prompts[request]))
                self.head += 1
            schedule = self.ask()
            try:
                if schedule.tokens or schedule.preempt:
                    self.execute(schedule)
                else:
                    self.wait(schedule, times[self.head])
            except _Broken as error:
                raise ValueError(
                    f"{type(self.policy).__name__}.schedule broke the rules in step {len(self.clock)} "
                    f"(at {self.now:.6g} s): {error}"
                ) from None
        runs = self.past_runs + [(request, *run) for request, run in self.runs.items()]
        return log_from(self.arrivals.arrival, self.admitted, self.clock, self.stretches, runs, self.preempted)

    def ask(self) -> Schedule:
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
                f"{type(self.policy).__name__}.schedule must return a Schedule, not {schedule!r}; "
                "an idle step is Schedule()"
            )
        return schedule

    def wait(self, schedule: Schedule, next_arrival: float) -> None:
        if isinstance(schedule.wait_until, bool) or not isinstance(schedule.wait_until, (int, float)):
            raise _Broken(f"wait_until must be a time in seconds, not {schedule.wait_until!r}")
        until = min(schedule.wait_until, next_arrival)
        if not until > self.now or until == NEVER:
            raise _Broken(
                f"it runs nothing although {len(self.running)} requests run and {len(self.waiting)} wait, and nothing "
                "will change by waiting: give tokens to at least one request"
            )
        self.now = until

    def execute(self, schedule: Schedule) -> None:
        step = len(self.clock)
        dropped = self.preempt(schedule.preempt)
        plan = self.admit(schedule.tokens)
        if not plan:
            raise _Broken("it preempts but runs nothing: give tokens to at least one request")
        used = self.take_padded(plan) if self.policy.padded else self.take_blocks(plan)
        record = self.record_of(plan)
        seconds = checked(self.step_time, record)
        tokens = record.prefill_tokens
        held = len(self.running), used, len(schedule.preempt), dropped
        self.stretches.append((step, self.now, record.decodes, record.decode_context, tokens, *held))
        self.now += seconds
        self.clock.append(self.now)
        for request, chunk in plan:
            before = request.known
            request.computed += chunk
            if self.policy.padded or request.computed == before:
                if request.emitted < self.output[request.index]:
                    self.note_token(request.index, step)
                request.emitted += 1
        self.answer(plan)

    def preempt(self, victims) -> int:
        """Tokens that the victims had computed, and lose."""
        dropped = 0
        for victim in victims:
            if victim not in self.running:
                raise _Broken(f"it preempts {victim!r}, which does not run")
            if self.policy.padded:
                raise _Broken(f"it preempts {victim!r}, but a padded batch runs to its end")
            self.running.remove(victim)
            self.free += victim.blocks
            dropped += victim.computed
            victim.blocks = victim.computed = 0
            self.preempted[victim.index] += 1
            self.waiting.appendleft(victim)
        return dropped

    def admit(self, tokens: Mapping[Request, int]) -> list[tuple[Request, int]]:
        """The plan, checked against slots and budget; new requests have moved from waiting to running."""
        if not isinstance(tokens, Mapping):
            raise _Broken(f"tokens must be a dict of requests to token counts, not {tokens!r}")
        known, plan, total = set(self.running) | set(self.waiting), [], 0
        for request, chunk in tokens.items():
            if request not in known:
                raise _Broken(f"it runs {request!r}, which neither runs nor waits")
            try:
                chunk = settings.whole(f"the tokens of {request!r}", chunk)
            except ValueError as error:
                raise _Broken(str(error)) from None
            if not self.policy.padded and chunk > request.remaining:
                raise _Broken(f"it gives {chunk} tokens to {request!r}, which has {request.remaining} left to compute")
            plan.append((request, chunk))
            total += chunk
        if not self.policy.padded and total > self.budget:
            raise _Broken(f"it runs {total} tokens, and max_num_batched_tokens is {self.budget}")
        running = set(self.running)
        fresh = [request for request in tokens if request not in running]
        if len(self.running) + len(fresh) > self.slots:
            raise _Broken(f"it needs {len(self.running) + len(fresh)} slots, and max_num_seqs is {self.slots}")
        if fresh:
            taken = set(fresh)
            self.waiting = deque(request for request in self.waiting if request not in taken)
            self.running.extend(fresh)
            for request in fresh:
                if math.isnan(self.admitted[request.index]):
                    self.admitted[request.index] = self.now
        return plan

    def take_blocks(self, plan) -> int:
        """Blocks held after the step's tokens have found their place."""
        for request, chunk in plan:
            blocks = blocks_for(request.computed + chunk, self.block_size)
            self.free -= blocks - request.blocks
            request.blocks = blocks
        if self.free < 0:
            raise _Broken(
                f"it takes {-self.free} KV blocks more than the cache of {self.cache.num_blocks} has: preempt somebody, "
                "or admit fewer"
            )
        return self.cache.num_blocks - self.free if self.cache else 0

    def take_padded(self, plan) -> int:
        """Blocks that the whole batch reserves, once it starts."""
        if len(plan) != len(self.running):
            raise _Broken(f"it runs {len(plan)} of {len(self.running)} requests, but a padded batch runs as one")
        prompts = max(request.prompt_tokens for request in self.running)
        if plan[0][0].computed == 0:
            for request, chunk in plan:
                if chunk != prompts:
                    raise _Broken(f"it gives {chunk} tokens to {request!r}, but prompts are padded to {prompts}")
                request.padded_prompt = prompts
        elif any(chunk != 1 for _, chunk in plan):
            raise _Broken("it gives other than 1 token to a decode of a padded batch")
        outputs = max(self.output[request.index] for request in self.running)
        return check_batch_fits(self.cache, len(self.running), prompts, outputs)

    def record_of(self, plan) -> Step:
        if self.policy.padded:
            decodes = [request for request, _ in plan if request.computed]
            context = sum(request.padded_prompt + request.emitted for request in decodes)
        else:
            decodes = [request for request, _ in plan if request.emitted and request.remaining == 1]
            context = sum(request.known for request in decodes)
        ones = set(decodes)
        chunks = tuple((chunk, request.computed) for request, chunk in plan if request not in ones)
        return Step(len(decodes), context, chunks)

    def note_token(self, request: int, step: int) -> None:
        run = self.runs.get(request)
        if run is not None and run[1] == step - 1:
            run[1] = step
            return
        if run is not None:
            self.past_runs.append((request, *run))
        self.runs[request] = [step, step]

    def answer(self, plan) -> None:
        """Send the answers that are complete; a padded batch leaves as one."""
        ended = [request for request, _ in plan if request.emitted >= self.output[request.index]]
        if self.policy.padded and len(ended) < len(self.running):
            return
        gone = set(ended)
        self.running = [request for request in self.running if request not in gone]
        for request in ended:
            self.free += request.blocks
            request.blocks = 0
            self.answered += 1
            self.arrivals.answered(request.index, self.now, self.head)
