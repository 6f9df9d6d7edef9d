"""A padded batch: prompts as long as the longest; all requests stay until the last answer is complete, then leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course.engine import answer
from course.engine.fast.passes import Passes
from course.policies.base import Request


class PaddedBatch:
    """The batch of a request-level engine, one after the other."""

    def __init__(self, engine: Passes):
        self.engine = engine
        self.prompt = 0  # what each prompt is padded to
        self.end = 0  # the first step without the batch, if lengths are known
        self._open: dict[Request, None] = {}  # those whose answer is not complete, if lengths are not known

    def execute(self, tokens: Mapping[Request, Any]) -> None:
        """One step of the batch: its first, with all prompts, or decodes that are listed one by one."""
        running = self.engine.running
        if not running:
            self._begin(tokens)
            return
        answer.check_batch(tokens, running, ())
        self.engine.decode_steps(None)

    def _begin(self, tokens: Mapping[Request, Any]) -> None:
        engine, step, width = self.engine, self.engine.steps, len(tokens)
        self.prompt = prompt = answer.check_batch(tokens, (), engine.queue)
        for request in tokens:
            del engine.queue[request]
            engine.members[request] = None
            request.life.admitted = step
        engine.running_shown = None
        if engine.free_slots < 0:
            raise answer.too_much(engine.limits, engine.free_slots, 0, engine.pool, tokens)
        if engine.simulated:
            lengths, longest = engine.simulated.lengths, engine.simulated.longest(tokens)
            self.end = step + longest
            self._reserve(prompt + longest - 1, longest)
            seconds = engine.simulated.seconds(0, 0, ((prompt, 0),) * width)
        else:
            self._open = dict.fromkeys(tokens)
            for request in tokens:
                engine.pool.take(request, prompt)
            if engine.pool.free < 0:
                raise answer.no_blocks(engine.pool, -engine.pool.free, tokens)
            seconds = engine.run_live([(request, prompt, True) for request in tokens], 0)
        engine.now = engine.last_step_end = engine.now + seconds
        engine.clock.append(engine.now)
        engine.pool.spend(engine.phases.advance(1))
        engine.pool.note()
        engine.steps += 1
        engine.fruitless = 0
        notes = engine.notes
        for request in tokens:
            life, row = request.life, request.life.row
            life.decodes_from, life.emitted_before, life.computed_before, life.tokens_from = step + 1, 1, prompt, step
            life.known_first, life.plain = prompt + 1, False
            notes.chunks.extend((row, step, prompt, 0))
            if engine.simulated:
                notes.tokens.extend((row, step, step + lengths[row] - 1, 1))
                notes.decodes.extend((row, step + 1, self.end - 1, prompt + 1))
                notes.stays.extend((row, step, self.end - 1))
            else:
                engine.phases.decode(prompt)
        engine.decodes, engine.context = width, width * (prompt + 1)
        if not engine.simulated:
            engine.finish_foretold()
        self.after_step()

    def _reserve(self, tokens: int, output: int) -> None:
        """Blocks for the longest prompt and the longest answer, in every slot."""
        engine, pool = self.engine, self.engine.pool
        if engine.cache is None:
            return
        answer.check_reserve(pool, len(engine.running), self.prompt, output)
        for request in engine.running:
            pool.reserve(request, tokens)

    def ended(self, request: Request) -> None:
        """An executor that knows no lengths says that this answer is complete; its slot goes on computing padding."""
        del self._open[request]
        engine = self.engine
        if request.life.tokens_from < engine.steps:
            engine.notes.tokens.extend((request.life.row, request.life.tokens_from, engine.steps - 1, 1))

    def is_open(self, request: Request) -> bool:
        """Whether its answer is not complete yet, if lengths are not known."""
        return request in self._open

    def after_step(self) -> None:
        """All requests leave once the last answer is complete."""
        engine = self.engine
        if engine.steps < self.end if engine.simulated else self._open:
            return
        members, turns = engine.running, engine.arrivals.follow_answers
        for request in members:
            if not engine.simulated:
                row, last = request.life.row, engine.steps - 1
                if request.life.decodes_from <= last:
                    engine.notes.decodes.extend((row, request.life.decodes_from, last, request.life.known_first))
                engine.notes.stays.extend((row, request.life.admitted, last))
                engine.phases.pause(request.computed)
            if engine.cache is not None:
                engine.pool.release(request)
        engine.members.clear()
        engine.running_shown = None
        engine.decodes = engine.context = 0
        engine.answered += len(members)
        for request in members:
            life = request.life
            more = engine.steps - life.decodes_from
            life.emitted_before += more
            life.computed_before += more
            life.decodes_from, life.leaves_at, life.engine = -1, engine.steps, None
            if turns:
                engine.arrivals.answered(request.life.row, engine.now)
