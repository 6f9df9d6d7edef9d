"""The common case of continuous batching, as tight as Python gets: first come first served, with blocks enough for all.

One door, `shortcut`, says whether an engine may go this way: its policy is exactly `Continuous`, its clock a step-time
model, its arrivals known beforehand. Then nobody is touched but those who join or leave, and a request is a row of the
workload, not an object. `_rounds` is for prompts that fit whole, `_chunked` for as long as the budget cuts them, and
`_counted` for as long as the cache might not hold all that run at full length. If a decode finds no block, the loop of
`fast.loop` takes over and finds everything as it would have left it itself.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from course.engine.arrivals import NEVER
from course.engine.executor import Simulated
from course.engine.fast.lives import LAST
from course.engine.fast.passes import Passes
from course.engine.fast.stretch import LONG, decode, keep, long_stretch
from course.engine.log import check_length
from course.engine.step import StepTimeModel
from course.memory.block_pool import BlockPool
from course.memory.phases import Phases
from course.policies.base import Request
from course.policies.continuous import Continuous
from course.policies.request import fill_remaining
from course.workload import Workload

_ROUNDS = 1 << 10  # at a time; then the times of the steps so far go where they take less memory
_PAUSE = 16  # times that the policy is asked before the next try
_ROOMY = 8  # one in so many blocks free: then a shortage is some time off
_END = 1 << 62


def shortcut(engine: Passes) -> Shortcut | None:
    """The tight loop for this engine, None where it may not be taken."""
    arrivals, policy, simulated = engine.arrivals, engine.policy, engine.simulated
    if type(engine.pool) is not BlockPool:
        return None
    if type(policy) is not Continuous or vars(policy).keys() & {"schedule", "queue", "victim", "admit", "make_room"}:
        return None
    if simulated is None or simulated.model is None or engine.limits.padded or not engine.honour_until:
        return None
    load = arrivals.load
    if load is None or arrivals.next_turns or len(load) < len(arrivals.arrival):
        return None
    return Shortcut(engine, policy, load, simulated, simulated.model)


class Shortcut:
    """The rows of a workload in the form that the tight loop wants; and the way in and out of it.

    A finish code is n x (the first step without the request) + request.
    """

    def __init__(self, engine: Passes, policy: Continuous, load: Workload, simulated: Simulated, model: StepTimeModel):
        prompts, outputs, n, cache = load.prompt_tokens, load.output_tokens, len(load), engine.cache
        self.engine, self.requests, self.policy, self.load = engine, n, policy, load
        self.simulated, self.model = simulated, model
        self.blocks, self.total = [0] * n, 0
        if cache is not None:
            self.total = int(engine.pool.free) + sum(engine.pool.held(request) for request in engine.members)
            needed = cache.blocks_for(prompts + outputs - 1)  # at full length
            # Whichever requests get the slots, blocks may never run short: then none need be counted.
            if min(policy.max_num_seqs, n) * int(needed.max()) > self.total:
                self.blocks = needed.tolist()
        # A prompt that must run in chunks counts as more than any budget.
        longest = policy.long_prefill_token_threshold or policy.max_num_batched_tokens
        self.whole = np.where(prompts <= longest, prompts, policy.max_num_batched_tokens + 1).tolist()
        self.pairs = (prompts * (prompts + 1) // 2).tolist()
        self.codes = (outputs * n + np.arange(n)).tolist()  # finish codes of those who join in step 0
        self.prompt, self.length = engine.arrivals.prompt, (prompts + outputs).tolist()
        self.answered: list[int] = []  # finish codes of those who have left
        self.partial: list[tuple[int, int]] = []  # (request, tokens computed) of prompts that are not complete
        self.cut: dict[int, int] = {}  # those whose prompt was cut, and the step in which they were admitted
        self.noted: dict[int, Request] = {}  # those whose life was no plain one when they came in
        self.pause = 0

    def taken(self) -> bool:
        """Serve as far as this way leads. False where it is not open: then the policy must be asked."""
        engine = self.engine
        self.pause -= 1
        if self.pause > 0 or engine.sent_back or engine.prefilling:
            return False
        self.spare = self.total - sum(self.blocks[request.life.row] for request in engine.members)
        self.scarce = self.spare < 0  # those that run could outgrow the cache
        if self.scarce and engine.pool.free * _ROOMY < self.total:
            self.pause = _PAUSE // 4
            return False
        self._come_in()
        while not self.special and len(self.answered) + engine.answered < self.requests:
            if self.scarce:
                self._counted()
            else:
                self._rounds()
            if self.chunked:
                self._chunked()
        self._go_out()
        self.pause = _PAUSE
        return True

    def _come_in(self) -> None:
        engine, n = self.engine, self.requests
        self.special = self.chunked = False  # this way ends; the budget cuts a prompt
        self.noted = {request.life.row: request for request in engine.members if not request.life.plain}
        self.head = engine.arrivals.head - len(engine.queue)
        self.decodes, self.context = engine.decodes, engine.context
        self.finishes = [_END, *(request.life.leaves_at * n + request.life.row for request in engine.members)]
        heapify(self.finishes)
        self.answered, self.partial = [], []
        for request in engine.members:
            engine.phases.pause(request.computed)
            engine.pool.release(request)

    def _go_out(self) -> None:
        """The engine's own state again: those who left are written down, those who run become requests."""
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
        here.update((row, self._as_request(row, leave)) for leave, row in self._decoding() if row not in here)
        here.update((row, self._as_prefilling(row, computed)) for row, computed in self.partial)
        for leave, row in self._decoding():
            engine.leaves_at(here[row], leave)
            engine.phases.decode(here[row].computed)
            engine.decoding.add(here[row])
        new = sorted(here.keys() - before)  # they were admitted in the order of their rows
        present = {row for _, row in self._decoding()} | {row for row, _ in self.partial}
        for row in [row for row in (*before, *new) if row in present]:
            engine.members[here[row]] = None
            engine.pool.take(here[row], here[row].computed, computed=0)
        engine.prefilling.update((here[row], None) for row, _ in self.partial)
        if engine.finishes[0][0] <= engine.steps:
            engine.let_go()

    def _write_down(self) -> None:
        """The lives of those who have left."""
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

    def _decoding(self) -> list[tuple[int, int]]:
        """(the first step without it, request) of those that decode."""
        return [divmod(code, self.requests) for code in self.finishes if code != _END]

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

    def _rounds(self) -> None:
        """Some rounds: those leave whose answer is complete, those join who wait, and a stretch of decodes follows.

        Ends when all is served, and where those who wait cannot join as they are: `special`, `chunked`. Each line runs
        about once a request: their number is what the simulator's speed depends on.
        """
        n, slots, budget = self.requests, self.policy.max_num_seqs, self.policy.max_num_batched_tokens
        times, prompts, codes, length = self.engine.arrivals.times, self.whole, self.codes, self.length
        blocks, finishes, lines = self.blocks, self.finishes, self.simulated.lines
        a_token, a_pair = self.model.prefill_line() or (None, 0.0)
        now, head, decodes, spare = self.engine.now, self.head, self.decodes, self.spare
        ends: list[float] = []  # of the latest steps, not yet in the clock
        step = len(self.engine.clock)
        offset = self.context - decodes * step  # the decodes attend to offset + decodes x step tokens
        leave = finishes[0] // n  # the first step without the one who leaves next
        coming = times[head] if decodes < slots else NEVER  # when the next one can join

        for _ in range(_ROUNDS):
            while leave <= step:
                code = heappop(finishes)
                self.answered.append(code)
                offset += step - length[code % n]
                decodes -= 1
                spare += blocks[code % n]
                leave, coming = finishes[0] // n, times[head]

            if coming <= now:  # a step with new prompts
                end = head + 1
                if times[end] > now:
                    tokens = prompts[head]
                    spare -= blocks[head]
                else:
                    while end < head + slots - decodes and times[end] <= now:
                        end += 1
                    tokens = sum(prompts[head:end])
                    spare -= sum(blocks[head:end])
                if spare < 0 or tokens + decodes > budget:
                    self.scarce, self.chunked = spare < 0, spare >= 0
                    spare += sum(blocks[head:end])
                    break
                if a_token is None:
                    context, pairs = offset + decodes * step, sum(self.pairs[head:end])
                    now += self.model.seconds(decodes, context, tokens, pairs, tokens)
                else:
                    base, slope = lines[decodes]
                    base += a_token * tokens
                    if slope:
                        base += slope * (offset + decodes * step)
                    if a_pair:
                        base += a_pair * sum(self.pairs[head:end])
                    now += base
                ends.append(now)
                offset += tokens
                while head < end:
                    heappush(finishes, codes[head] + step * n)
                    offset -= step
                    decodes += 1
                    head += 1
                step += 1
                leave, coming = finishes[0] // n, times[head] if decodes < slots else NEVER
                if now >= coming or leave <= step:
                    continue
            elif not decodes:
                if coming == NEVER:
                    break
                now = coming
                self.engine.idle.append((step, now))
                continue

            base, slope = lines[decodes]
            if leave - step >= LONG and now + LONG * base < coming:
                if ends:
                    keep(self.engine.clock, ends)
                context = offset + decodes * step
                now = long_stretch(self.engine.clock, now, coming, leave - step, decodes, context, base, slope)
                step = len(self.engine.clock)
            elif slope:
                context = offset + decodes * step
                for step in range(step + 1, leave + 1):  # noqa: B007, B020
                    now += base + slope * context
                    ends.append(now)
                    if now >= coming:
                        break
                    context += decodes
            else:
                for step in range(step + 1, leave + 1):  # noqa: B007, B020
                    now += base
                    ends.append(now)
                    if now >= coming:
                        break

        keep(self.engine.clock, ends)
        check_length(self.engine.clock)
        self.engine.now, self.head, self.decodes, self.spare = now, head, decodes, spare
        self.context = offset + decodes * step

    # While blocks may run short

    def _counted(self) -> None:
        """As `_rounds`, with every block counted, until those that run fit at full length again, and some more.

        Ends as well, `special`, if a decode finds no block, and if the budget would cut a prompt.
        """
        engine, n, policy, length = self.engine, self.requests, self.policy, self.length
        times, clock, finishes, now = engine.arrivals.times, engine.clock, self.finishes, engine.now
        blocks_for, phases, free = engine.pool.blocks_for, Phases(engine.pool.block_size), self.total
        phases.step = len(clock)
        for leave, row in self._decoding():
            computed = length[row] - 1 - (leave - phases.step)  # all but its last token, when it leaves
            phases.decode(computed)
            free -= blocks_for(computed)
        for _ in range(_ROUNDS):
            step, head, due = phases.step, self.head, phases.due
            while finishes[0] // n <= step:
                code = heappop(finishes)
                computed = length[code % n] - 1
                phases.pause(computed)
                free += blocks_for(computed)
                self._leave(code)
                due = phases.due
            if due > free:
                self.special = True
                break
            if self.spare * _ROOMY >= self.total and times[head] > now:
                self.scarce = False
                break
            left, slots, room = (
                policy.max_num_batched_tokens - self.decodes,
                policy.max_num_seqs - self.decodes,
                free - due,
            )
            while slots and times[head] <= now and self.whole[head] <= left and blocks_for(self.prompt[head]) <= room:
                left -= self.prompt[head]
                room -= blocks_for(self.prompt[head])
                slots -= 1
                head += 1
            if slots and times[head] <= now and self.whole[head] > left:
                self.special = True
                break
            if head > self.head:  # a step with new prompts
                now += self.simulated.seconds(
                    self.decodes, self.context, [(tokens, 0) for tokens in self.prompt[self.head : head]]
                )
                clock.append(now)
                free = room
                phases.step += 1
                self.context += self.decodes
                for row in range(self.head, head):
                    phases.decode(self.prompt[row])
                    heappush(finishes, self.codes[row] + step * n)
                    self.context += self.prompt[row] + 1
                    self.spare -= self.blocks[row]
                self.decodes += head - self.head
                self.head = head
            elif self.decodes:
                stop = times[head] if slots and times[head] > now else NEVER  # else nobody joins before somebody leaves
                count = phases.steps_left(free, finishes[0] // n - step)
                now = decode(self.simulated, clock, now, stop, count, self.decodes, self.context)
                self.context += self.decodes * (len(clock) - step)
                free -= phases.advance(len(clock) - step)
            elif times[head] == NEVER:
                break
            else:
                now = times[head]
                engine.idle.append((step, now))
        check_length(clock)
        engine.now = now

    # While the budget cuts prompts

    def _chunked(self) -> None:
        """As `_rounds`, step by step where somebody joins or computes a chunk, until the next prompt fits whole."""
        engine, n, policy = self.engine, self.requests, self.policy
        times, clock, finishes, lasting = engine.arrivals.times, engine.clock, self.finishes, 0
        self.chunked = False
        while not self.special:
            step = len(clock)
            while finishes[0] // n <= step:
                self._leave(heappop(finishes))
            waiting = times[self.head] <= engine.now and self.decodes + len(self.partial) < policy.max_num_seqs
            if (waiting or self.partial) and self._chunk_step(step):
                lasting += 1
                if not lasting % _ROUNDS:
                    check_length(clock, engine.notes.chunks)
                continue
            if self.special or not self.decodes:
                return
            full = waiting or self.decodes >= policy.max_num_seqs  # then nobody joins before somebody leaves
            stop = NEVER if full else times[self.head]
            count = finishes[0] // n - step
            engine.now = decode(self.simulated, clock, engine.now, stop, count, self.decodes, self.context)
            self.context += self.decodes * (len(clock) - step)
            if (
                not waiting
                and times[self.head] < NEVER
                and self.whole[self.head] + self.decodes <= policy.max_num_batched_tokens
            ):
                return

    def _waiting(self, most: int) -> int:
        """How many wait, counted up to `most`."""
        times, now = self.engine.arrivals.times, self.engine.now
        return sum(when <= now for when in times[self.head : self.head + most])

    def _leave(self, code: int) -> None:
        row = code % self.requests
        self.decodes -= 1
        self.context -= self.length[row]
        self.spare += self.blocks[row]
        self.answered.append(code)

    def _chunk_step(self, step: int) -> bool:
        """One step with prompts in it. False where nobody can join, or where blocks may run short: then `special`."""
        engine, policy, notes = self.engine, self.policy, self.engine.notes
        cap, left = policy.long_prefill_token_threshold, policy.max_num_batched_tokens - self.decodes
        if cap and self.decodes < 2:
            cap = policy.cap_among(self.decodes + len(self.partial) + self._waiting(2))
        cap = cap or policy.max_num_batched_tokens
        plan: list[tuple[int, int, int]] = []  # request, tokens, computed before
        for row, computed in self.partial:
            chunk = min(self.prompt[row] - computed, cap, left)
            plan.append((row, chunk, computed))
            left -= chunk
        head, slots, spare = self.head, policy.max_num_seqs - self.decodes - len(plan), self.spare
        while left > 0 and slots > 0 and engine.arrivals.times[head] <= engine.now:
            chunk = min(self.prompt[head], cap)
            if chunk > left:
                if not policy.enable_chunked_prefill:
                    break
                chunk = left
            spare -= self.blocks[head]
            if spare < 0:
                self.special = True
                return False
            plan.append((head, chunk, 0))
            left -= chunk
            slots -= 1
            head += 1
        if not plan:
            return False

        self.head, self.spare = head, spare
        tokens = pairs = seen = 0
        for _, chunk, computed in plan:
            tokens += chunk
            pairs += chunk * computed + chunk * (chunk + 1) // 2
            seen += computed + chunk
        engine.now += self.model.seconds(self.decodes, self.context, tokens, pairs, seen)
        engine.clock.append(engine.now)
        self.context += self.decodes
        self.partial = []
        for row, chunk, computed in plan:
            done, prompt = computed + chunk, self.prompt[row]
            if computed or done < prompt:
                if chunk:
                    notes.chunks.extend((row, step, chunk, computed))
                self.cut.setdefault(row, step)
            if done < prompt:
                self.partial.append((row, done))
                continue
            self.decodes += 1
            self.context += prompt + 1
            heappush(self.finishes, self.codes[row] + step * self.requests)
        return True
