"""A padded batch: prompts as long as the longest, everybody held until the last answer is complete, then all leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from course.base import settings
from course.engine import answer
from course.policies.base import Request

if TYPE_CHECKING:
    from course.engine.loop import Engine


class PaddedBatch:
    """The batch of a request-level engine, one after the other."""

    def __init__(self, engine: Engine):
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
                raise answer.Broken(f"it admits {request!r}, but no request can join a running padded batch")
            if chunk != 1:
                raise answer.Broken("it must give exactly 1 token to a decode of a padded batch")
        if len(tokens) != len(running):
            raise answer.Broken(f"it runs {len(tokens)} of {len(running)} requests, but a padded batch runs as one")
        self.engine.decode_steps(None)

    def _known(self, request: Any, chunk: Any) -> None:
        if type(request) is not Request or request._engine is not self.engine:
            raise answer.unknown(request)
        if type(chunk) is not int or chunk < 1:
            answer.chunk_of(request, chunk, settings.MAX_TOKENS)

    def _begin(self, tokens: Mapping[Request, Any]) -> None:
        engine, step, width = self.engine, self.engine.step, len(tokens)
        for request, chunk in tokens.items():
            self._known(request, chunk)
        self.prompt = prompt = max(request._prompt_tokens for request in tokens)
        for request, chunk in tokens.items():
            if chunk != prompt:
                raise answer.Broken(f"it gives {chunk} tokens to {request!r}, but prompts are padded to {prompt}")
            if request not in engine._queue:
                raise answer.unknown(request)
            del engine._queue[request]
            engine._running[request] = None
            request._admitted = step
        engine.waiting_shown = engine.running_shown = None
        if engine.free_slots < 0:
            raise answer.too_much(engine, 0)
        if engine.simulated:
            lengths = engine.simulated.lengths
            longest = max(lengths[request._index] for request in tokens)
            self.end = step + longest
            self._reserve(prompt + longest - 1, longest)
            seconds = engine.simulated.seconds(0, 0, ((prompt, 0),) * width)
        else:
            self._open = dict.fromkeys(tokens)
            for request in tokens:
                engine.pool.take(request, prompt)
            if engine.pool.free < 0:
                raise answer.no_blocks(engine.pool, -engine.pool.free)
            seconds = engine._live([(request, prompt) for request in tokens])
        engine.now = engine.last_step_end = engine.now + seconds
        engine.clock.append(engine.now)
        engine.pool.advance(1)
        engine.step += 1
        engine._fruitless = 0
        notes = engine.notes
        for request in tokens:
            row = request._index
            request._since, request._e, request._c, request._tokens_from = step + 1, 1, prompt, step
            request._decodes_known, request._whole = prompt + 1, False
            notes.chunks.extend((row, step, prompt, 0))
            if engine.simulated:
                notes.tokens.extend((row, step, step + lengths[row] - 1, 1))
                notes.decodes.extend((row, step + 1, self.end - 1, prompt + 1))
                notes.stays.extend((row, step, self.end - 1))
            else:
                engine.pool.decode(prompt)
        engine.decodes, engine.context = width, width * (prompt + 1)
        if not engine.simulated:
            engine._finish_foretold()
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
        if request._tokens_from < engine.step:
            engine.notes.tokens.extend((request._index, request._tokens_from, engine.step - 1, 1))

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
                row, last = request._index, engine.step - 1
                if request._since <= last:
                    engine.notes.decodes.extend((row, request._since, last, request._decodes_known))
                engine.notes.stays.extend((row, request._admitted, last))
                engine.pool.pause(request.computed)
            if engine.cache is not None:
                engine.pool.release(request)
        engine._running.clear()
        engine.running_shown = None
        engine.decodes = engine.context = 0
        engine.answered += len(members)
        for request in members:
            more = engine.step - request._since
            request._e, request._c, request._since, request._engine = request._e + more, request._c + more, -1, None
            if turns:
                engine.arrivals.answered(request._index, engine.now)
