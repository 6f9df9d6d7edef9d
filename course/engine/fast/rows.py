"""A workload in the form that the tight loops of `fast.tight` want, and the way in and out of it.

A request is a row of the workload; only those that run when the loops begin or end are objects.
"""

from __future__ import annotations

from heapq import heapify

import numpy as np

from course.engine.executor import Simulated
from course.engine.fast.lives import LAST
from course.engine.fast.passes import Passes
from course.engine.step import StepTimeModel
from course.policies.base import Request
from course.policies.continuous import Continuous
from course.policies.request import fill_remaining
from course.workload import Workload

END = 1 << 62  # a finish code behind all others


class Rows:
    """The rows of a workload, those of them that decode and those that prefill.

    A finish code is n x (the first step without the request) + request.
    """

    def __init__(self, engine: Passes, policy: Continuous, load: Workload, simulated: Simulated, model: StepTimeModel):
        prompts, outputs, n, cache = load.prompt_tokens, load.output_tokens, len(load), engine.cache
        self.engine, self.requests, self.policy, self.load = engine, n, policy, load
        self.simulated, self.model = simulated, model
        self.slots = engine.limits.max_num_seqs
        self.blocks, self.total = [0] * n, 0
        if cache is not None:
            self.total = int(engine.pool.free) + sum(engine.pool.held(request) for request in engine.members)
            needed = cache.blocks_for(prompts + outputs - 1)  # at full length
            # Whichever requests get the slots, blocks may never run short: then none need be counted.
            if min(self.slots, n) * int(needed.max()) > self.total:
                self.blocks = needed.tolist()
        # A prompt that must run in chunks counts as more than any budget.
        longest = policy.long_prefill_token_threshold or policy.max_num_batched_tokens
        self.whole = np.where(prompts <= longest, prompts, policy.max_num_batched_tokens + 1).tolist()
        self.pairs = (prompts * (prompts + 1) // 2).tolist()
        self.codes = (outputs * n + np.arange(n)).tolist()  # finish codes of requests that join in step 0
        self.prompt, self.length = engine.arrivals.prompt, (prompts + outputs).tolist()
        self.answered: list[int] = []  # finish codes of requests that have left
        self.partial: list[tuple[int, int]] = []  # (request, tokens computed) of prompts that are not complete
        self.cut: dict[int, int] = {}  # those whose prompt was cut, and the step in which they were admitted
        self.noted: dict[int, Request] = {}  # those whose life was no plain one when they came in
        self.spare = 0  # blocks left when all that run are at full length

    def come_in(self) -> None:
        """Take over from the engine: those that run become finish codes."""
        engine, n = self.engine, self.requests
        self.special = self.chunked = False  # this way ends; the budget cuts a prompt
        self.noted = {request.life.row: request for request in engine.members if not request.life.plain}
        self.head = engine.arrivals.head - len(engine.queue)
        self.decodes, self.context = engine.decodes, engine.context
        self.finishes = [END, *(request.life.leaves_at * n + request.life.row for request in engine.members)]
        heapify(self.finishes)
        self.answered, self.partial = [], []
        for request in engine.members:
            engine.phases.pause(request.computed)
            engine.pool.release(request)

    def go_out(self) -> None:
        """The engine's own state again: what left is written down, what runs becomes requests."""
        engine = self.engine
        self._write_down()
        engine.arrivals.head = self.head
        here = {request.life.row: request for request in engine.members}
        before = tuple(here)
        engine.queue.clear()
        engine.members.clear()
        engine.decoding.clear()
        engine.running_shown = None
        taken, engine.steps = len(engine.clock) - engine.steps, len(engine.clock)
        if taken:
            engine.last_step_end = engine.clock[-1]
        engine.decodes, engine.context = self.decodes, self.context
        engine.finishes = [LAST]
        engine.phases.step = engine.steps
        here.update((row, self._as_request(row, leave)) for leave, row in self.running() if row not in here)
        here.update((row, self._as_prefilling(row, computed)) for row, computed in self.partial)
        for leave, row in self.running():
            engine.leaves_at(here[row], leave)
            engine.phases.decode(here[row].computed)
            engine.decoding.add(here[row])
        new = sorted(here.keys() - before)  # they were admitted in the order of their rows
        present = {row for _, row in self.running()} | {row for row, _ in self.partial}
        for row in [row for row in (*before, *new) if row in present]:
            engine.members[here[row]] = None
            engine.pool.take(here[row], here[row].computed, computed=0)
        engine.prefilling.update((here[row], None) for row, _ in self.partial)
        if engine.finishes[0][0] <= engine.steps:
            engine.let_go()

    def _write_down(self) -> None:
        """The lives of the requests that have left."""
        notes, load = self.engine.notes, self.load
        leave, row = np.divmod(np.array(self.answered, dtype=np.int64), self.requests)
        self.engine.answered += len(row)
        cut = np.isin(row, [*self.cut, *self.noted])
        first = leave - load.output_tokens[row]
        rows = np.stack([row, first, leave - 1], axis=1)
        notes.plain.frombytes(rows[~cut].tobytes())
        for request, begin, last in rows[cut].tolist():
            if request in self.noted:
                self.engine.note_run(self.noted[request], last)
                notes.stays.extend((request, self.noted[request].life.admitted, last))
                continue
            notes.tokens.extend((request, begin, last, 1))
            notes.decodes.extend((request, begin + 1, last, self.prompt[request] + 1))
            notes.stays.extend((request, self.cut.pop(request), last))

    def running(self) -> list[tuple[int, int]]:
        """(the first step without it, request) of those that decode."""
        return [divmod(code, self.requests) for code in self.finishes if code != END]

    def _as_request(self, row: int, leave: int) -> Request:
        """One that decodes and leaves before that step."""
        request = self.engine.arrivals.request(row, self.engine)
        life, first = request.life, leave - self.simulated.lengths[row]
        life.decodes_from, life.tokens_from, life.admitted = first + 1, first, first
        if row in self.cut:
            life.admitted, life.plain = self.cut.pop(row), False
        life.emitted_before, life.computed_before = 1, life.prompt_tokens
        life.known_first = life.prompt_tokens + 1
        fill_remaining(request, 1)
        return request

    def _as_prefilling(self, row: int, computed: int) -> Request:
        request = self.engine.arrivals.request(row, self.engine)
        life = request.life
        life.admitted, life.computed_before, life.plain = self.cut.pop(row), computed, False
        fill_remaining(request, life.prompt_tokens - computed)
        return request

    def leave(self, code: int) -> None:
        """A request has its answer; its blocks are free."""
        row = code % self.requests
        self.decodes -= 1
        self.context -= self.length[row]
        self.spare += self.blocks[row]
        self.answered.append(code)
