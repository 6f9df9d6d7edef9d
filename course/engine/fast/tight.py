"""The common case of continuous batching, as tight as Python gets: first come first served, with blocks enough for all.

One door, `shortcut`, says whether an engine may go this way: its policy is exactly `Continuous`, its clock a step-time
model, its arrivals known beforehand. Then a step touches only requests that join or leave, and a request is a row of
the workload, not an object. `_rounds` is for prompts that fit whole, `_chunked` while the budget cuts them, and
`_counted` for as long as the cache might not hold all that run at full length. If a decode finds no block, the loop of
`fast.loop` takes over and finds everything as it would have left it itself.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

from course.engine.arrivals import NEVER
from course.engine.fast.passes import Passes
from course.engine.fast.rows import Rows
from course.engine.fast.stretch import LONG, decode, keep, long_stretch
from course.engine.log import check_length
from course.memory.block_pool import BlockPool
from course.memory.phases import Phases
from course.policies.continuous import Continuous

_RULES = ("schedule", "queue", "victim", "room", "cap", "cap_among", "admit", "make_room")  # a policy's
_ROUNDS = 1 << 10  # at a time; then the times of the steps so far go where they take less memory
_PAUSE = 16  # times that the policy is asked before the next try
_ROOMY = 8  # one in so many blocks free: then a shortage is some time off


class Way(Protocol):
    """A tight loop."""

    def taken(self) -> bool:
        """Serve as far as this way leads. False if it is not open: then the policy must be asked."""
        ...


def shortcut(engine: Passes) -> Way | None:
    """The tight loop for this engine, None if it may not be taken."""
    arrivals, policy, simulated = engine.arrivals, engine.policy, engine.simulated
    if type(policy) is not Continuous or policy.budget_changes or not vars(policy).keys().isdisjoint(_RULES):
        return None
    if simulated is None or simulated.model is None or engine.limits.padded or not engine.honour_until:
        return None
    if engine.cache and engine.cache.prefix_caching:
        from course.engine.fast.joining import joining  # not needed by others

        return joining(engine, policy, simulated)
    if type(engine.pool) is not BlockPool or policy.watermark:
        return None
    load = arrivals.load
    if load is None or load.patience is not None or arrivals.follow_answers or len(load) < len(arrivals.arrival):
        return None
    return Shortcut(engine, policy, load, simulated, simulated.model)


class Shortcut(Rows):
    """The three loops over rows."""

    pause = 0  # times that the policy is asked before the next try

    def taken(self) -> bool:
        """See Way."""
        engine = self.engine
        self.pause -= 1
        if self.pause > 0 or engine.sent_back or engine.prefilling:
            return False
        self.spare = self.total - sum(self.blocks[request.life.row] for request in engine.members)
        self.scarce = self.spare < 0  # those that run could outgrow the cache
        if self.scarce and engine.pool.free * _ROOMY < self.total:
            self.pause = _PAUSE // 4
            return False
        self.come_in()
        while not self.special and len(self.answered) + engine.answered < self.requests:
            if self.scarce:
                self._counted()
            else:
                self._rounds()
            if self.chunked:
                self._chunked()
        self.go_out()
        self.pause = _PAUSE
        return True

    def _rounds(self) -> None:
        """Some rounds: complete answers leave, waiting requests join, and a stretch of decodes follows.

        Ends when all is served, and if those that wait cannot join as they are: `special`, `chunked`. Each line runs
        about once a request: their number is what the simulator's speed depends on.
        """
        n, slots, budget = self.requests, self.slots, self.policy.max_num_batched_tokens
        times, prompts, codes, length = self.engine.arrivals.times, self.whole, self.codes, self.length
        blocks, finishes, lines = self.blocks, self.finishes, self.simulated.lines
        a_token, a_pair = self.model.prefill_line() or (None, 0.0)
        now, head, decodes, spare = self.engine.now, self.head, self.decodes, self.spare
        ends: list[float] = []  # of the latest steps, not yet in the clock
        step = len(self.engine.clock)
        offset = self.context - decodes * step  # the decodes attend to offset + decodes x step tokens
        leave = finishes[0] // n  # the first step without the one that leaves next
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
        for leave, row in self.running():
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
                self.leave(code)
                due = phases.due
            if due > free:
                self.special = True
                break
            if self.spare * _ROOMY >= self.total and times[head] > now:
                self.scarce = False
                break
            left, slots, room = (
                policy.max_num_batched_tokens - self.decodes,
                self.slots - self.decodes,
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
                stop = times[head] if slots and times[head] > now else NEVER  # else none joins before one leaves
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
        """As `_rounds`, step by step while a request joins or computes a chunk, until the next prompt fits whole."""
        engine, n, policy = self.engine, self.requests, self.policy
        times, clock, finishes, lasting = engine.arrivals.times, engine.clock, self.finishes, 0
        self.chunked = False
        while not self.special:
            step = len(clock)
            while finishes[0] // n <= step:
                self.leave(heappop(finishes))
            waiting = times[self.head] <= engine.now and self.decodes + len(self.partial) < self.slots
            if (waiting or self.partial) and self._chunk_step(step):
                lasting += 1
                if not lasting % _ROUNDS:
                    check_length(clock, engine.notes.chunks)
                continue
            if self.special or not self.decodes:
                return
            full = waiting or self.decodes >= self.slots  # then none joins before one leaves
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

    def _chunk_step(self, step: int) -> bool:
        """One step with prompts in it. False if none can join, or if blocks may run short: then `special`."""
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
        head, slots, spare = self.head, self.slots - self.decodes - len(plan), self.spare
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
