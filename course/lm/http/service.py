"""Requests that come at any moment, from any thread, to one engine in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np

from course.base import settings
from course.engine.cancel import cancel
from course.engine.executor import Work
from course.engine.feasible import check_feasible
from course.engine.live import Emitted
from course.engine.serving import Engine
from course.lm.cache import Blocks
from course.lm.http.metrics import Metrics
from course.lm.http.ticket import Ticket
from course.lm.live import CANCELLED, Speaking, full_cache
from course.lm.speaker import LanguageModel
from course.lm.threads import one_thread
from course.memory.kvcache import KVCache
from course.policies.base import Limits, Policy, Request

BROKEN = "error"
POLL = 0.001  # seconds: how often a policy that waits is asked again
RENEW = 1_000  # requests after which an idle engine is replaced by a new one, which has no past


class Full(ValueError):
    """The service has as many requests as it takes: slots and `max_waiting`."""


class Service:
    """A model under a policy, from `start` to `stop`. Use it as a context.

    cache: KV blocks; without one, as many as the slots can fill. max_waiting: requests beyond the slots that may wait;
    the next one is refused. A padded batch is answered when it ends, as everywhere in the course.
    """

    def __init__(self, model: LanguageModel, policy: Policy, cache: KVCache | None = None, max_waiting: int = 256):
        self.model, self.policy = model, policy
        self.cache = full_cache(policy, model.config) if cache is None else cache
        limits = Limits.of(policy)
        self._budget = limits.max_num_batched_tokens
        self.most = limits.max_num_seqs + settings.whole("max_waiting", max_waiting, low=0)
        self.metrics = Metrics("course-lm", self.cache)
        self._memory = model.paged_kv(self.cache.num_blocks, self.cache.block_size)
        self._bell = threading.Condition()
        self._arrived: list[Ticket] = []
        self._gone: list[Ticket] = []
        self._here: dict[Ticket, None] = {}  # from any thread, under the bell
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="engine", daemon=True)
        self._renew()

    def __enter__(self) -> Service:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._bell:
            self._closed = True
            self._bell.notify()
        self._thread.join()

    def submit(self, ticket: Ticket) -> None:
        """Hand in a request. Raises Full if slots and queue are full, ValueError for what can never be served."""
        room = self.cache.block_size * self.cache.num_blocks
        limit = self.model.config.max_position_embeddings
        if ticket.max_tokens is not None:
            limit = min(limit, len(ticket.tokens) + ticket.max_tokens)
        if limit - 1 > room:
            raise ValueError(f"{limit} tokens do not fit the KV cache of {room}: ask for fewer max_tokens.")
        check_feasible(np.array([len(ticket.tokens)]), np.array([1]), 0, self.policy, self._budget, self.cache)
        with self._bell:
            if self._closed:
                raise Full("The server is going down.")
            if len(self._here) >= self.most:
                raise Full(f"{len(self._here)} requests are here, and no more may wait: try again in a moment.")
            self._here[ticket] = None
            self._arrived.append(ticket)
            self._bell.notify()

    def cancel(self, ticket: Ticket) -> None:
        """End a request whose client has gone. Does nothing if the answer is complete."""
        with self._bell:
            if ticket in self._here:
                self._gone.append(ticket)
                self._bell.notify()

    # In the engine's thread

    def _renew(self) -> None:
        self._speaking = _Timed(self, self._memory)
        self._engine = Engine(self.policy, self._speaking, self.cache)
        self._speaking.begin()
        self._rows: dict[int, Ticket] = {}
        self._held: list[tuple[Ticket, str, str]] = []  # of a padded batch
        self._preemptions = 0

    def _serve(self) -> None:
        with one_thread():
            while True:
                with self._bell:
                    while not (self._arrived or self._gone or self._rows or self._closed):
                        self._bell.wait()
                    arrived, self._arrived = self._arrived, []
                    gone, self._gone = self._gone, []
                    if self._closed:
                        self._break("The server is going down.")
                        return
                try:
                    self._turn(arrived, gone)
                except Exception as error:  # a policy of one's own may do anything; the next requests find a new engine
                    self._break(f"The engine stopped with an error: {settings.reason(error)}")
                    self._renew()

    def _turn(self, arrived: Sequence[Ticket], gone: Sequence[Ticket]) -> None:
        engine = self._engine
        if not self._rows and len(engine.arrivals.arrival) > RENEW:
            self._renew()
            engine = self._engine
        for ticket in arrived:
            self._enter(ticket)
        for ticket in gone:
            self._leave(ticket)
        steps = engine.steps
        if self._rows:
            engine.advance(max(self._speaking.now, engine.present))
        if self._held and not engine.running:  # the batch has ended: now it is answered
            held, self._held = self._held, []
            for ticket, text, ended in held:
                self._tell(ticket, text, ended)
        self._count()
        if self._rows and engine.steps == steps:  # the policy waits
            with self._bell:
                self._bell.wait(POLL)

    def _enter(self, ticket: Ticket) -> None:
        engine = self._engine
        request = Request(max(self._speaking.now, engine.present), len(ticket.tokens))
        try:
            engine.submit(request)
        except ValueError as error:
            self._close(ticket, BROKEN, str(error))
            return
        ticket.request = request
        self._rows[request.index] = ticket
        self._speaking.ask(
            request.index, ticket.tokens, ticket.max_tokens, ticket.sampling, ticket.number,
            lambda _, text, ended: self._hear(ticket, text, ended), ticket.ignore_end, ticket.stop,
        )  # fmt: skip

    def _leave(self, ticket: Ticket) -> None:
        request = ticket.request
        if request is None or request.index not in self._rows:
            return
        self._speaking.answers[request.index].ended = CANCELLED
        cancel(self._engine, request)
        self.metrics.ended("abort", ticket)
        self._close(ticket, CANCELLED, "")

    def _hear(self, ticket: Ticket, text: str, ended: str) -> None:
        if self._engine.limits.padded:
            self._held.append((ticket, text, ended))
        else:
            self._tell(ticket, text, ended)

    def _tell(self, ticket: Ticket, text: str, ended: str) -> None:
        if ticket not in self._here:
            return
        now = time.monotonic()
        ticket.emitted += 1
        self.metrics.token(ticket, now, alone=not self._engine.limits.padded)
        if ticket.emitted == 1:
            ticket.first = now
        ticket.last = now
        if ended:
            self.metrics.ended(ended, ticket)
            self._close(ticket, ended, text)
        else:
            ticket.said(text, "")

    def _close(self, ticket: Ticket, ended: str, text: str) -> None:
        if ticket.request is not None:
            self._rows.pop(ticket.request.index, None)
        with self._bell:
            self._here.pop(ticket, None)
        ticket.said(text, ended)

    def _break(self, sentence: str) -> None:
        with self._bell:
            here = list(self._here)
            self._here.clear()
            self._arrived, self._gone = [], []
        for ticket in here:
            self.metrics.ended(BROKEN, ticket)
            ticket.said(sentence, BROKEN)
        self._rows = {}

    def _count(self) -> None:
        engine = self._engine
        answers = self._speaking.answers
        for row in [row for row, answer in answers.items() if answer.ended and row not in self._rows]:
            if not engine.limits.padded or not engine.running:  # padding is computed until the batch ends
                del answers[row]
        preemptions = len(engine.notes.preemptions) // 3
        free = engine.pool.free / self.cache.num_blocks
        self.metrics.state(
            running=len(engine.running),
            waiting=len(self._here) - sum(1 for request in engine.running if request.index in self._rows),
            usage=1 - free,
            preempted=preemptions - self._preemptions,
        )
        self._preemptions = preemptions


class _Timed(Speaking):
    """Notes when each request's first step begins, and how many tokens a step has."""

    def __init__(self, service: Service, memory: Blocks):
        super().__init__(service.model, service.cache, memory=memory)
        self.service = service

    def compute(self, work: Work) -> Emitted:
        now = time.monotonic()
        for request, _ in work.chunks:
            ticket = self.service._rows.get(request.index)
            if ticket is not None and not ticket.started:
                ticket.started = now
        self.service.metrics.step(len(work.decodes) + sum(tokens for _, tokens in work.chunks))
        return super().compute(work)
