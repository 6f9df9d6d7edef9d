"""A padded batch: prompts as long as the longest, everybody held until the last answer is complete, then all leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course.base import settings
from course.engine import answer
from course.engine.fast.passes import Passes
from course.policies.base import Request


class PaddedBatch:
    """The batch of a request-level engine, one after the other."""

    def __init__(self, engine: Passes):
        self.engine = engine
        self.prompt = 0  # what each prompt is padded to
        self.end = 0  # the first step without the batch, where lengths are known
        self._open: dict[Request, None] = {}  # those whose answer is not complete, where lengths are not known

    def execute(self, tokens: Mapping[Request, Any]) -> None:
        """One step of the batch: its first, with all prompts, or decodes that are listed one by one."""
        running = self.engine.running
        if not running:
            self._begin(tokens)
            return
        for request, chunk in tokens.items():
            self._known(request, chunk)
            if request not in running:
                raise answer.Broken(
                    f"it admits {request!r}, but no request can join a running padded batch", "padded-join", (request,)
                )
            if chunk != 1:
                raise answer.Broken(
                    "it must give exactly 1 token to a decode of a padded batch", "padded-chunk", (request,)
                )
        if len(tokens) != len(running):
            raise answer.Broken(
                f"it runs {len(tokens)} of {len(running)} requests, but a padded batch runs as one",
                "padded-all",
                tokens,
            )
        self.engine.decode_steps(None)

    def _known(self, request: Any, chunk: Any) -> None:
        if type(request) is not Request or request.life.engine is not self.engine:
            raise answer.unknown(request)
        if type(chunk) is not int or chunk < 1:
            answer.chunk_of(request, chunk, settings.MAX_TOKENS)

    def _begin(self, tokens: Mapping[Request, Any]) -> None:
        engine, step, width = self.engine, self.engine.step, len(tokens)
        for request, chunk in tokens.items():
            self._known(request, chunk)
        self.prompt = prompt = max(request.life.prompt_tokens for request in tokens)
        for request, chunk in tokens.items():
            if chunk != prompt:
                raise answer.Broken(
                    f"it gives {chunk} tokens to {request!r}, but prompts are padded to {prompt}",
                    "padded-chunk",
                    (request,),
                )
            if request not in engine.queue:
                raise answer.unknown(request)
            del engine.queue[request]
            engine.members[request] = None
            request.life.admitted = step
        engine.waiting_shown = engine.running_shown = None
        if engine.free_slots < 0:
            raise answer.too_much(engine.limits, engine.free_slots, 0, engine.pool, tokens)
        if engine.simulated:
            lengths = engine.simulated.lengths
            longest = max(lengths[request.life.row] for request in tokens)
            self.end = step + longest
            self._reserve(prompt + longest - 1, longest)
            seconds = engine.simulated.seconds(0, 0, ((prompt, 0),) * width)
        else:
            self._open = dict.fromkeys(tokens)
            for request in tokens:
                engine.pool.take(request, prompt)
            if engine.pool.free < 0:
                raise answer.no_blocks(engine.pool, -engine.pool.free, tokens)
            seconds = engine.run_live([(request, prompt) for request in tokens])
        engine.now = engine.last_step_end = engine.now + seconds
        engine.clock.append(engine.now)
        engine.pool.advance(1)
        engine.step += 1
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
                engine.pool.decode(prompt)
        engine.decodes, engine.context = width, width * (prompt + 1)
        if not engine.simulated:
            engine.finish_foretold()
        self.after_step()

    def _reserve(self, tokens: int, output: int) -> None:
        """Blocks for the longest prompt and the longest answer, in every slot."""
        engine, pool = self.engine, self.engine.pool
        if engine.cache is None:
            return
        free, width = pool.free, len(engine.running)
        for request in engine.running:
            pool.reserve(request, tokens)
        if pool.free < 0:
            raise ValueError(
                f"a batch of {width} requests padded to {self.prompt} prompt and {output} output tokens reserves "
                f"{free - pool.free} KV blocks, and num_blocks is {pool.num_blocks}: lower max_num_seqs to at most "
                f"{max(1, free * width // (free - pool.free))}, or give the cache more blocks"
            )

    def ended(self, request: Request) -> None:
        """An executor that knows no lengths says that this answer is complete; its slot goes on computing padding."""
        del self._open[request]
        engine = self.engine
        if request.life.tokens_from < engine.step:
            engine.notes.tokens.extend((request.life.row, request.life.tokens_from, engine.step - 1, 1))

    def is_open(self, request: Request) -> bool:
        """Whether its answer is not complete yet, where lengths are not known."""
        return request in self._open

    def after_step(self) -> None:
        """Where the last answer is complete, everybody leaves."""
        engine = self.engine
        if engine.step < self.end if engine.simulated else self._open:
            return
        members, turns = engine.running, engine.arrivals.next_turns
        for request in members:
            if not engine.simulated:
                row, last = request.life.row, engine.step - 1
                if request.life.decodes_from <= last:
                    engine.notes.decodes.extend((row, request.life.decodes_from, last, request.life.known_first))
                engine.notes.stays.extend((row, request.life.admitted, last))
                engine.pool.pause(request.computed)
            if engine.cache is not None:
                engine.pool.release(request)
        engine.members.clear()
        engine.running_shown = None
        engine.decodes = engine.context = 0
        engine.answered += len(members)
        for request in members:
            life = request.life
            life.emitted_before, life.computed_before = life.emitted, life.computed
            life.decodes_from, life.engine = -1, None
            if turns:
                engine.arrivals.answered(request.life.row, engine.now)
