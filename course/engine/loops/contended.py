"""A step in which the KV blocks do not suffice for all that run: planned request by request.

Somebody is preempted in it, so nobody is admitted. And everybody who still runs gets a token at least: first come first
served cuts nobody short but the one admitted last, since those before it never ask for more than in the step before.
"""

from typing import TYPE_CHECKING

from course.memory.kvcache import blocks_for
from course.policies.base import Request, State

if TYPE_CHECKING:
    from course.engine.loops.continuous import ContinuousLoop


class Contention:
    """One such step of a ContinuousLoop. Everybody who runs becomes a Request, and the policy schedules them."""

    def __init__(self, loop: "ContinuousLoop"):
        self.loop, self.index = loop, len(loop.clock)
        computed = {request: done for request, done, _ in loop.prefilling}
        codes = [code for code in loop.finishes if code != loop.finishes_end]
        self.last = {code % loop.requests: code // loop.requests - 1 for code in codes}
        self.running: list[Request] = []
        for request in loop.trace.by_admission([*computed, *self.last], loop.arrivals.ids, loop.head):
            view = Request(request, loop.arrivals.arrival[request], loop.prompt[request])
            if request in self.last:  # it decodes: it emits in this step and in each one up to its last
                view.emitted = loop.output[request] - (self.last[request] - self.index) - 1
                view.computed = view.known - 1
            else:
                view.emitted = loop.emitted.get(request, 0)
                view.computed = computed[request]
            view.blocks = blocks_for(view.computed, loop.size)
            self.running.append(view)

    def step(self) -> None:
        """Run it."""
        loop, step = self.loop, self.index
        schedule = loop.policy.schedule(self.state())
        for victim in schedule.preempt:
            self.preempt(victim)
        decodes = context = tokens = pairs = seen = 0
        for view, chunk in schedule.tokens.items():
            loop.free -= blocks_for(view.computed + chunk, loop.size) - view.blocks
            if view.emitted and view.remaining == 1:
                decodes += 1
                context += view.known
                if view.index not in self.last:
                    loop.trace.decode(view.index, step, view.known)
            else:
                tokens += chunk
                pairs += chunk * view.computed + chunk * (chunk + 1) // 2
                seen += chunk + view.computed
                loop.trace.chunk(view.index, step, chunk, view.computed)
        loop.now += loop.step_time.seconds(decodes, context, tokens, pairs, seen)
        loop.clock.append(loop.now)

        loop.clear_decodes()
        for view, chunk in schedule.tokens.items():
            self.rejoin(view, chunk)

    def state(self) -> State:
        loop = self.loop
        return State(
            now=loop.now,
            waiting=(),  # whoever waits goes on waiting
            running=tuple(self.running),
            free_blocks=loop.free,
            block_size=loop.size,
            max_num_seqs=loop.policy.max_num_seqs,
            max_num_batched_tokens=loop.policy.max_num_batched_tokens,
            no_more_arrivals=False,
        )

    def preempt(self, victim: Request) -> None:
        loop, request = self.loop, victim.index
        if request in self.last:
            loop.trace.pause(request, self.index)
        loop.trace.leave(request, self.index, victim.computed)
        loop.emitted[request] = victim.emitted
        loop.free += victim.blocks
        loop.reserved -= loop.blocks[request]
        loop.requeued.append(request)

    def rejoin(self, view: Request, chunk: int) -> None:
        """Sort a running request in again, from what it has computed after the step."""
        loop, request, known = self.loop, view.index, view.known
        if view.computed + chunk < known:
            loop.prefilling.append([request, view.computed + chunk, known])
            return
        if request not in self.last:
            loop.trace.first_token(request, self.index, known)
        loop.join(request, known + 1, self.index)
