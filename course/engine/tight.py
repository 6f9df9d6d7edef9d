"""The common case of continuous batching, as tight as Python gets: prompts that fit whole, blocks enough for all.

One door, `shortcut`, says whether an engine may go this way: its policy is exactly `Continuous`, its clock a step-time
model, its arrivals known beforehand. Then nobody is touched but those who join or leave, and a request is a row of the
workload, not an object. Where somebody must wait for budget or blocks, the loop of `engine.loop` takes over and finds
everything as it would have left it itself.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from course.engine.arrivals import NEVER
from course.engine.log import check_length
from course.engine.stretch import LONG, keep, long_stretch
from course.memory.block_pool import BlockPool
from course.policies.continuous import Continuous

if TYPE_CHECKING:
    from course.engine.loop import Engine

_ROUNDS = 1 << 10  # at a time; then the times of the steps so far go where they take less memory
_PAUSE = 64  # times that the policy is asked before the next try
_END = 1 << 62
LAST = (_END, -1, None)  # the end of an engine's heap of finishes, so that there is always a first


def shortcut(engine: Engine) -> Shortcut | None:
    """The tight loop for this engine, None where it may not be taken."""
    arrivals, policy = engine.arrivals, engine.policy
    plain = type(policy) is Continuous and not vars(policy).keys() & {"schedule", "queue", "make_room"}
    foreseen = engine.foresees and engine.honour_until and not engine.limits.padded
    if not plain or not foreseen or engine.executor.model is None or arrivals.load is None or arrivals.next_turns:
        return None
    return Shortcut(engine) if len(arrivals.load) == len(arrivals.arrival) else None


class Shortcut:
    """The rows of a workload in the form that the tight loop wants; and the way in and out of it.

    A finish code is n x (the first step without the request) + request.
    """

    def __init__(self, engine: Engine):
        load, policy, cache = engine.arrivals.load, engine.policy, engine.cache
        prompts, outputs, n = load.prompt_tokens, load.output_tokens, len(load)
        self.engine, self.requests, self.policy, self.model = engine, n, policy, engine.executor.model
        size = engine.pool.block_size
        needed = -((1 - prompts - outputs) // size)  # blocks at full length
        # Whoever gets the slots, blocks may never run short: then nobody need count them.
        self.counted = cache is not None and min(policy.max_num_seqs, n) * int(needed.max()) > cache.num_blocks
        self.blocks = needed.tolist() if self.counted else []
        # A prompt that must run in chunks counts as more than any budget.
        longest = policy.long_prefill_token_threshold or policy.max_num_batched_tokens
        self.whole = np.where(prompts <= longest, prompts, policy.max_num_batched_tokens + 1).tolist()
        self.pairs = (prompts * (prompts + 1) // 2).tolist()
        self.codes = (outputs * n + np.arange(n)).tolist()  # finish codes of those who join in step 0
        self.length = (prompts + outputs).tolist()
        self.answered: list[int] = []  # finish codes of those who have left
        self.pause = 0

    def taken(self) -> bool:
        """Serve as far as this way leads. False where it is not open: then the policy must be asked."""
        engine = self.engine
        self.pause -= 1
        if self.pause > 0 or engine._sent_back or engine.prefilling:
            return False
        if not all(request._whole for request in engine._running):
            return False
        self._come_in()
        while not self.special and len(self.answered) + self.earlier < self.requests:
            self._rounds()
        self._go_out()
        self.pause = _PAUSE
        return True

    def _come_in(self) -> None:
        engine, n = self.engine, self.requests
        self.special, self.earlier = False, engine.answered
        self.head = engine.arrivals.head - len(engine._queue)
        self.decodes, self.context = engine.decodes, engine.context
        self.finishes = [_END, *(request._leave * n + request._index for request in engine._running)]
        heapify(self.finishes)
        self.reserved = sum(self.blocks[request._index] for request in engine._running) if self.counted else 0
        self.answered = []

    def _go_out(self) -> None:
        """The engine's own state again: those who left are written down, those who run become requests."""
        engine, n, outputs = self.engine, self.requests, self.engine.executor.lengths
        leave, row = np.divmod(np.array(self.answered, dtype=np.int64), n)
        lives = np.stack([row, leave - engine.arrivals.load.output_tokens[row], leave - 1], axis=1)
        engine.notes.plain.frombytes(lives.tobytes())
        engine.answered += len(self.answered)
        engine.arrivals.head = self.head
        here = {request._index: request for request in engine._running}
        engine._queue.clear()
        engine._running.clear()
        engine._waiting_shown = engine._running_shown = None
        taken, engine.step = len(engine.clock) - engine.step, len(engine.clock)
        if taken:
            engine.last_step_end = engine.clock[-1]
        engine.decodes, engine.context = self.decodes, self.context
        engine._finishes = [LAST]
        pool = engine.pool = engine.cache.open() if engine.cache else BlockPool()
        pool.advance(engine.step)
        for code in sorted((code for code in self.finishes if code != _END), key=lambda code: code % n):
            leave, row = divmod(code, n)
            request = here.get(row)
            if request is None:
                request = engine.arrivals.request(row)
                request._engine = engine
                request._since = leave - outputs[row] + 1
                request._admitted = request._tokens_from = request._since - 1
                request._e, request._c = 1, request._prompt_tokens
                request._decodes_known = request._prompt_tokens + 1
            engine._running[request] = None
            engine._leaves_at(request, leave)
            pool.free -= pool.held(request)
            pool.decode(request.computed)
        if engine._finishes[0][0] <= engine.step:
            engine._leave()

    def _rounds(self) -> None:
        """Some rounds: those leave whose answer is complete, those join who wait, and a stretch of decodes follows.

        Ends when all is served, and sets `special` where those who wait cannot join as they are. Each line runs about
        once a request: their number is what the simulator's speed depends on.
        """
        engine, n, slots, budget = (
            self.engine,
            self.requests,
            self.policy.max_num_seqs,
            self.policy.max_num_batched_tokens,
        )
        times, prompts, pairs_of, codes, length = engine.arrivals.times, self.whole, self.pairs, self.codes, self.length
        counted, blocks, total = self.counted, self.blocks, engine.pool.num_blocks
        clock, finishes, answered = engine.clock, self.finishes, self.answered
        seconds, lines, linear = self.model.seconds, engine.executor._lines, self.model.prefill_line()
        a_token, a_pair = linear or (0.0, 0.0)
        now, head, decodes, reserved = engine.now, self.head, self.decodes, self.reserved
        ends: list[float] = []  # of the latest steps, not yet in the clock
        step = len(clock)
        offset = self.context - decodes * step  # the decodes attend to offset + decodes x step tokens
        leave = finishes[0] // n  # the first step without the one who leaves next
        coming = times[head] if decodes < slots else NEVER  # when the next one can join

        for _ in range(_ROUNDS):
            while leave <= step:
                code = heappop(finishes)
                answered.append(code)
                offset += step - length[code % n]
                decodes -= 1
                if counted:
                    reserved -= blocks[code % n]
                leave, coming = finishes[0] // n, times[head]

            if coming <= now:  # a step with new prompts
                end = head + 1
                if times[end] > now:
                    tokens, pairs = prompts[head], pairs_of[head]
                else:
                    last = head + slots - decodes
                    while end < last and times[end] <= now:
                        end += 1
                    tokens, pairs = sum(prompts[head:end]), sum(pairs_of[head:end])
                if tokens + decodes > budget or (counted and reserved + sum(blocks[head:end]) > total):
                    self.special = True
                    break
                if counted:
                    reserved += sum(blocks[head:end])
                if linear:
                    base, slope = lines[decodes]
                    base += a_token * tokens
                    if slope:
                        base += slope * (offset + decodes * step)
                    if a_pair:
                        base += a_pair * pairs
                    now += base
                else:
                    now += seconds(decodes, offset + decodes * step, tokens, pairs, tokens)
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
                engine.idle.append((step, now))
                continue

            base, slope = lines[decodes]
            if leave - step >= LONG and now + LONG * base < coming:
                if ends:
                    keep(clock, ends)
                now = long_stretch(clock, now, coming, leave - step, decodes, offset + decodes * step, base, slope)
                step = len(clock)
            elif slope:
                context = offset + decodes * step
                for done in range(step + 1, leave + 1):  # noqa: B007
                    now += base + slope * context
                    ends.append(now)
                    if now >= coming:
                        break
                    context += decodes
                step = done
            else:
                for done in range(step + 1, leave + 1):  # noqa: B007
                    now += base
                    ends.append(now)
                    if now >= coming:
                        break
                step = done

        keep(clock, ends)
        check_length(clock)
        engine.now, self.head, self.decodes, self.reserved = now, head, decodes, reserved
        self.context = offset + decodes * step
