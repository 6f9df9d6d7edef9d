"""Continuous batching with a prefix cache: who finds room joins at once, and is looked up once.

The policy would be asked for a plan, and its answer checked: each newcomer is looked up in the plan, and again when it
gets its slot. Here the decodes take their blocks, and then each newcomer in turn, as vLLM's scheduler goes about it.
What is rare is left to the loop of `fast.loop`: victims, prompts under way, a wait for blocks which others may fill.
"""

from __future__ import annotations

import math
from typing import Any

from course.engine.executor import Simulated
from course.engine.fast.passes import Passes
from course.engine.log import check_length
from course.memory.prefix_pool import PrefixPool
from course.policies.continuous import Continuous


def joining(engine: Passes, policy: Continuous, simulated: Simulated) -> Joining | None:
    """The way for this engine, whose clock is a step-time model; None if it may not be taken."""
    if not isinstance(engine.pool, PrefixPool) or not policy.enable_chunked_prefill:
        return None
    return Joining(engine, policy, engine.pool, simulated)


class Joining:
    """The steps of an engine whose policy is exactly `Continuous` and whose pool is a `PrefixPool`.

    full_at: requests that were through when the first of the queue found no room: until the next one is, it will not,
    unless others compute what it needs (`asking`).
    """

    def __init__(self, engine: Passes, policy: Continuous, pool: PrefixPool, simulated: Simulated):
        self.engine, self.policy, self.pool, self.simulated = engine, policy, pool, simulated
        self.full_at, self.asking, self.rounds = -1, False, 0
        self.kept_free = int(policy.watermark * (pool.num_blocks + 1))

    def taken(self) -> bool:
        """See `fast.tight.Way`: the next steps, if nothing of what is rare stands in the way."""
        engine, policy = self.engine, self.policy
        if engine.sent_back or engine.prefilling:
            self.full_at = -1
            return False
        self.rounds += 1
        if not self.rounds % 1024:
            check_length(engine.clock, engine.notes.chunks)
        left = policy.max_num_batched_tokens - engine.decodes
        if engine.due > self.pool.free:
            self.full_at = -1
            return False
        slots, full = engine.limits.max_num_seqs - len(engine.members), self.full_at == engine.answered
        if engine.queue and left and slots and not full:
            if not self._join(left, slots):
                return False
        elif (full and self.asking) or not engine.decodes:
            return False
        else:
            engine.decode_steps(math.inf)
        if engine.finishes[0][0] <= engine.steps:
            engine.let_go()
        return True

    def _join(self, left: int, slots: int) -> bool:
        """A step in which the first of the queue join, as far as slots, budget and blocks last."""
        engine, policy, pool = self.engine, self.policy, self.pool
        size, whole, step, notes = pool.block_size, policy.scheduler_reserve_full_isl, engine.steps, engine.notes
        decodes, members, queue = engine.decodes, engine.members, engine.queue
        cap = policy.long_prefill_token_threshold
        if cap and decodes <= 1:
            cap = policy.cap_among(len(members) + len(queue))
        chunks, prompts, until = list[tuple[Any, int, bool]](), list[tuple[int, int]](), None
        pool.spend(engine.due, engine.decoding)
        while queue:
            request = next(iter(queue))
            life = request.life
            known = life.prompt_tokens
            chain = pool.chain(request)
            spans, end = pool.found(chain, known)
            cached = end * size
            chunk = remaining = known - cached
            if cap and chunk > cap:
                chunk = cap
            if chunk > left:
                chunk = left
            need = pool.blocks_for(cached + (remaining if whole else chunk)) - end + (self.kept_free if members else 0)
            for span in spans:
                if not span.copies[0].holders:
                    need += (span.hi if span.hi < end else end) - span.lo
            if need > pool.free:
                self.full_at, self.asking = engine.answered, not pool.steady
                until = math.inf if pool.steady else None
                break
            del queue[request]
            members[request] = None
            life.admitted, life.computed_before = step, cached
            pool.hold(chain, known, spans, end)
            pool.grow(chain, cached + chunk, step)
            chunks.append((request, chunk, chunk == remaining))
            prompts.append((chunk, cached))
            if chunk < remaining:
                engine.prefilling[request] = None
            if cached or chunk < remaining:
                notes.chunks.extend((life.row, step, chunk, cached))
                life.plain = False
            left -= chunk
            slots -= 1
            if not slots or not left:
                until = math.inf if left else None
                break
        else:
            until = math.inf
        if not chunks and not decodes:
            return False
        engine.phases.advance(1)
        pool.note()
        engine.now = engine.last_step_end = now = engine.now + self.simulated.seconds(decodes, engine.context, prompts)
        engine.clock.append(now)
        engine.context += decodes
        if decodes:
            engine.fruitless = 0
        engine.steps += 1
        if not chunks:
            return True
        engine.running_shown = None
        engine.computed(chunks)
        if until is not None and engine.goes_on(until):
            engine.decode_steps(until, if_there_is_room=True)
        return True
