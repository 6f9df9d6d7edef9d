"""A step in which token budget or KV blocks do not suffice for all that run: planned request by request."""

from typing import TYPE_CHECKING

from ..kvcache import blocks_for
from ..policies.base import Request, State
from .arrivals import NEVER

if TYPE_CHECKING:
    from .continuous import ContinuousLoop


class Contention:
    """One such step of a ContinuousLoop. Everybody who runs becomes a Request, and the policy schedules them."""

    def __init__(self, loop: "ContinuousLoop"):
        self.loop, self.index = loop, len(loop.clock)
        self.cache = loop.cache
        computed = {request: done for request, done, _ in loop.prefilling}
        decoding = {code % loop.requests: code // loop.requests for code in loop.finishes if code != loop.finishes_end}
        self.decoding = set(decoding)
        self.running: list[Request] = []
        for request in loop.trace.by_admission([*computed, *decoding], loop.arrivals.ids, loop.head):
            view = self.view(request)
            if request in decoding:  # it emits in this step and in each one up to its last
                view.emitted = loop.output[request] - (decoding[request] - self.index) - 1
                view.computed = view.known - 1
            else:
                view.computed = computed[request]
            view.blocks = blocks_for(view.computed, loop.size) if self.cache else 0
            self.running.append(view)

    def view(self, request: int) -> Request:
        """The request as it waits: nothing computed yet, or no longer."""
        view = Request(request, self.loop.arrivals.arrival[request], self.loop.prompt[request])
        view.emitted = self.loop.emitted.get(request, 0)
        return view

    def step(self) -> None:
        """Run it."""
        loop, step = self.loop, self.index
        schedule = loop.policy.schedule(self.state())
        for victim in schedule.preempt:
            self.preempt(victim)
        decodes = context = tokens = pairs = seen = 0
        for view, chunk in schedule.tokens.items():
            if view not in self.running:
                loop.admit(view.index, step)
                self.running.append(view)
            if self.cache:
                loop.free -= blocks_for(view.computed + chunk, loop.size) - blocks_for(view.computed, loop.size)
            if view.emitted and view.remaining == 1:
                decodes += 1
                context += view.known
                if view.index not in self.decoding:
                    loop.trace.decode(view.index, step, view.known)
            else:
                tokens += chunk
                pairs += chunk * view.computed + chunk * (chunk + 1) // 2
                seen += chunk + view.computed
                loop.trace.chunk(view.index, step, chunk, view.computed)
        loop.now += loop.step_time.seconds(decodes, context, tokens, pairs, seen)
        loop.clock.append(loop.now)

        loop.clear_decodes()
        for view in self.running:
            self.rejoin(view, schedule.tokens.get(view, 0))

    def state(self) -> State:
        loop = self.loop
        waiting = [self.view(request) for request in reversed(loop.requeued)]
        end, times = loop.head, loop.arrivals.times
        while times[end] <= loop.now and len(waiting) < loop.policy.max_num_seqs:  # more could not be admitted
            waiting.append(self.view(loop.arrivals.ids[end]))
            end += 1
        return State(
            now=loop.now,
            waiting=waiting,
            running=tuple(self.running),
            free_blocks=loop.free if self.cache else NEVER,
            block_size=loop.size,
            max_num_seqs=loop.policy.max_num_seqs,
            max_num_batched_tokens=loop.policy.max_num_batched_tokens,
            no_more_arrivals=times[end] == NEVER,
        )

    def preempt(self, victim: Request) -> None:
        loop, request = self.loop, victim.index
        if request in self.decoding:
            self.pause(request)
        loop.trace.leave(request, self.index, victim.computed)
        loop.emitted[request] = victim.emitted
        loop.free += victim.blocks
        loop.reserved -= loop.blocks[request]
        loop.requeued.append(request)
        self.running.remove(victim)

    def pause(self, request: int) -> None:
        loop, last = self.loop, self.loop.codes[request] // self.loop.requests
        loop.trace.pause(request, self.index, loop.prompt[request], loop.output[request], last)

    def rejoin(self, view: Request, chunk: int) -> None:
        """Sort a running request in again, from what it has computed after the step."""
        loop, request, known = self.loop, view.index, view.known
        if request in self.decoding:
            if not chunk:  # no turn in this step: its run of tokens is broken
                self.pause(request)
                loop.trace.resume(request, self.index + 1, known)
            loop.join(request, known + (chunk > 0), self.index)
        elif view.computed + chunk == known:
            loop.trace.first_token(request, self.index, known)
            loop.join(request, known + 1, self.index)
        else:
            loop.prefilling.append([request, view.computed + chunk, known])
