"""`policies.Continuous`, simulated fast: the work depends on events, not on tokens.

The same steps as `stepwise`, to the last bit, found without touching a request that does not change:
- A sequence that decodes computes one token a step, so (tokens computed - step number) stays constant from the moment it
  joins. Its last step is known then and goes on a heap; the context of all decodes is one running sum.
- It needs a KV block in every step in which its computed tokens are a multiple of the block size: once in `block_size`
  steps, at a fixed phase. A count of decodes by phase gives the blocks that any step needs.
- While nobody joins or leaves, a stretch of steps is taken at once; its times are added up one after the other.
A step in which not everybody gets what they want (budget or blocks short) is planned by the policy itself.
"""

from array import array
from heapq import heapify, heappop, heappush

import numpy as np

from ..kvcache import KVCache, blocks_for
from ..policies.base import Request, State
from ..policies.continuous import Continuous
from ..steptime import StepTimeModel
from ..workload import Workload
from .arrivals import NEVER, Arrivals
from .log import Log, log_from

_VECTOR = 48  # steps from which NumPy adds up a stretch faster than a plain loop


class ContinuousLoop:
    """State of one run. `run` keeps the hot part of it in local names and puts it back before a contended step."""

    def __init__(self, load: Workload, policy: Continuous, step_time: StepTimeModel, cache: KVCache | None):
        self.policy, self.step_time, self.cache = policy, step_time, cache
        self.block_size = cache.block_size if cache else 1
        self.arrivals = Arrivals(load)
        self.prompt, self.output = load.prompt_tokens.tolist(), load.output_tokens.tolist()
        n = self.requests = len(load)
        self.admitted = [0.0] * n
        self.emitted = [0] * n  # output tokens when the request last (re)joined the queue or a prompt
        self.run_first, self.run_last = [0] * n, [0] * n  # steps of the current run of tokens
        self.broken_runs: list[tuple[int, int, int]] = []
        self.preempted = [0] * n
        self.clock, self.stretches = array("d"), []

        self.now, self.step, self.head = 0.0, 0, 0
        self.requeued: list[int] = []  # preempted, the head of the queue last
        self.running: dict[int, None] = {}  # who holds a slot, in order of admission
        self.prefilling: list[
            list[int]
        ] = []  # [request, computed, known] of those that do not decode yet, in that order
        self.decodes = self.context = 0  # sequences that decode, and the tokens they attend to in the next step
        self.finishes: list[int] = []  # heap of last step x n + request
        self.phases = [0] * self.block_size  # decodes that need a block when step % block_size is this
        self.free = cache.num_blocks if cache else 0

    def run(self) -> Log:
        """Serve everybody."""
        n, size, kv = self.requests, self.block_size, self.cache is not None
        total_blocks = self.cache.num_blocks if kv else 0
        policy, arrivals = self.policy, self.arrivals
        slots, budget = policy.max_num_seqs, policy.max_num_batched_tokens
        threshold, reserve_all = policy.long_prefill_token_threshold, policy.scheduler_reserve_full_isl
        chunked = policy.enable_chunked_prefill
        prompt, output, emitted, admitted = self.prompt, self.output, self.emitted, self.admitted
        run_first, run_last = self.run_first, self.run_last
        times, ids, turns = arrivals.times, arrivals.ids, arrivals.next_turns
        requeued, running, prefilling = self.requeued, self.running, self.prefilling
        clock, tick, log = self.clock, self.clock.append, self.stretches.append
        seconds_of, decode_line = self.step_time.seconds, self.step_time.decode_line
        lines = [None] * (slots + 1)
        ramp = np.arange(4096, dtype=np.float64)
        finishes, phases = self.finishes, self.phases
        now, step, head, free = self.now, self.step, self.head, self.free
        decodes, context = self.decodes, self.context

        while True:
            done = None  # requests whose prompt is computed at the end of this step
            stop = NEVER
            if prefilling or ((requeued or times[head] <= now) and len(running) < slots):
                # ---- A step with prompt tokens: those under way, then new ones.
                held = free
                left, tokens, pairs, seen = budget - decodes, 0, 0, 0
                step_decodes, step_context = decodes, context
                if kv:
                    free -= phases[step % size]
                contended = free < 0
                if prefilling and not contended:
                    done = []
                    for entry in prefilling:
                        request, computed, known = entry
                        chunk = known - computed
                        if threshold and chunk > threshold:
                            chunk = threshold
                        if chunk > left:
                            if left <= 0 or request != next(reversed(running)):
                                contended = True
                                break
                            chunk = left
                        left -= chunk
                        if kv:
                            free -= blocks_for(computed + chunk, size) - blocks_for(computed, size)
                        if emitted[request] and computed == known - 1:
                            step_decodes += 1
                            step_context += known
                        else:
                            tokens += chunk
                            pairs += chunk * computed + chunk * (chunk + 1) // 2
                            seen += computed + chunk
                        if computed + chunk == known:
                            done.append(request)
                    contended = contended or free < 0
                if contended:
                    self.now, self.step, self.head, self.free = now, step, head, held
                    self.decodes, self.context = decodes, context
                    self.contended_step()
                    now, step, free, head = self.now, self.step, self.free, self.head
                    decodes, context, finishes, phases = self.decodes, self.context, self.finishes, self.phases
                    requeued, running, prefilling = self.requeued, self.running, self.prefilling
                    continue
                if prefilling:
                    self._advance_prefills(budget - decodes)

                while left > 0 and len(running) < slots:
                    if requeued:
                        request = requeued[-1]
                        known = prompt[request] + emitted[request]
                    elif times[head] <= now:
                        request = ids[head]
                        known = prompt[request]
                    else:
                        break
                    chunk = threshold if threshold and known > threshold else known
                    if chunk > left:
                        if not chunked:
                            break
                        chunk = left
                    if kv:
                        need = -(-chunk // size)
                        if (-(-known // size) if reserve_all else need) > free:
                            break
                        free -= need
                    if requeued:
                        requeued.pop()
                    else:
                        head += 1
                        admitted[request] = now
                    running[request] = None
                    left -= chunk
                    tokens += chunk
                    pairs += chunk * (chunk + 1) // 2
                    seen += chunk
                    if chunk < known:
                        prefilling.append([request, chunk, known])
                        if done is None:
                            done = []
                    elif done is None:
                        done = [request]
                    else:
                        done.append(request)

                if done is None:
                    free = held  # nobody could be admitted: nothing changes before somebody leaves
                else:
                    log((step, now, step_decodes, step_context, tokens, len(running), total_blocks - free, 0, 0))
                    now += seconds_of(step_decodes, step_context, tokens, pairs, seen)
                    tick(now)
                    context += decodes
                    last, step = step, step + 1
                    for request in done:
                        run_first[request] = last
                        known = prompt[request] + emitted[request]
                        to_go = output[request] - emitted[request] - 1
                        if to_go:
                            decodes += 1
                            context += known + 1
                            heappush(finishes, (last + to_go) * n + request)
                            if kv:
                                phases[(step - known) % size] += 1
                        else:
                            run_last[request] = last
                            del running[request]
                            if kv:
                                free += -(-known // size)
                            if turns:
                                arrivals.answered(request, now, head)
            elif not decodes:
                # ---- Idle until the next arrival.
                if times[head] == NEVER:
                    break
                now = max(now, times[head])
                continue
            elif len(running) < slots:
                stop = times[head]

            if done is None:
                # ---- A stretch of decodes: until the first of them ends, somebody can join, or the blocks run out.
                count = finishes[0] // n + 1 - step
                if kv and decodes * (count // size + 1) > free:
                    count = self._steps_before_shortage(step, count, free, phases)
                    if not count:
                        self.now, self.step, self.head, self.free = now, step, head, free
                        self.decodes, self.context = decodes, context
                        self.contended_step()
                        now, step, free, head = self.now, self.step, self.free, self.head
                        decodes, context, finishes, phases = self.decodes, self.context, self.finishes, self.phases
                        requeued, running, prefilling = self.requeued, self.running, self.prefilling
                        continue
                line = lines[decodes]
                if line is None:
                    line = lines[decodes] = decode_line(decodes)
                base, slope = line
                log(
                    (step, now, decodes, context, 0, len(running), total_blocks - free + phases[step % size] * kv, 0, 0)
                )
                if count < _VECTOR or stop - now < _VECTOR * base:
                    taken = 0
                    while True:
                        now += base + slope * context
                        tick(now)
                        context += decodes
                        taken += 1
                        if now >= stop or taken == count:
                            break
                else:
                    if stop < NEVER:
                        # Steps only get longer as the context grows: no more than this many begin before `stop`.
                        count = min(count, int((stop - now) / (base + slope * context)) + 2)
                    if count > len(ramp):
                        ramp = np.arange(2 * count, dtype=np.float64)
                    if slope:
                        ends = ramp[:count] * decodes
                        ends += context
                        ends *= slope
                        ends += base
                    else:
                        ends = np.full(count, base)
                    ends[0] += now
                    np.add.accumulate(ends, out=ends)
                    taken = count
                    if stop < NEVER:
                        taken = min(count, int(ends.searchsorted(stop)) + 1)
                    clock.frombytes(ends[:taken].tobytes())
                    now = ends.item(taken - 1)
                    context += decodes * taken
                if kv:
                    if taken == 1:
                        free -= phases[step % size]
                    else:
                        at, rest = step % size, taken % size
                        free -= decodes * (taken // size) + sum(phases[at : at + rest])
                        if at + rest > size:
                            free -= sum(phases[: at + rest - size])
                step += taken

            # ---- Those whose last token left with the step that ended now.
            while finishes and finishes[0] < step * n:
                request = heappop(finishes) % n
                run_last[request] = step - 1
                del running[request]
                decodes -= 1
                length = prompt[request] + output[request]
                context -= length
                if kv:
                    phases[(step + 1 - length) % size] -= 1
                    free += -(-(length - 1) // size)
                if turns:
                    arrivals.answered(request, now, head)

        runs = np.empty((n + len(self.broken_runs), 3), dtype=np.int64)
        runs[:n, 0], runs[:n, 1], runs[:n, 2] = np.arange(n), run_first, run_last
        if self.broken_runs:
            runs[n:] = self.broken_runs
        return log_from(arrivals.arrival, admitted, clock, self.stretches, runs, self.preempted)

    @staticmethod
    def _steps_before_shortage(step: int, count: int, free: int, phases: list[int]) -> int:
        """How many of the next `count` steps the free blocks last for."""
        size = len(phases)
        for taken in range(count):
            free -= phases[(step + taken) % size]
            if free < 0:
                return taken
        return count

    def _advance_prefills(self, left: int) -> None:
        """Count the chunks of a step as computed, and drop the prompts that are done."""
        threshold, keep = self.policy.long_prefill_token_threshold, []
        for request, computed, known in self.prefilling:
            chunk = min(known - computed, threshold or left, left)
            left -= chunk
            if computed + chunk < known:
                keep.append([request, computed + chunk, known])
        self.prefilling[:] = keep

    def contended_step(self) -> None:
        """One step in which budget or blocks do not suffice for all that run: planned request by request."""
        n, size, step, now = self.requests, self.block_size, self.step, self.now
        arrivals, times, ids = self.arrivals, self.arrivals.times, self.arrivals.ids
        state_of: dict[int, Request] = {}
        under_way = {request: computed for request, computed, _ in self.prefilling}
        last_step = {code % n: code // n for code in self.finishes}
        for request in self.running:
            view = state_of[request] = Request(request, arrivals.arrival[request], self.prompt[request])
            if request in under_way:
                view.emitted, view.computed = self.emitted[request], under_way[request]
            else:
                view.emitted = self.output[request] - (last_step[request] - step) - 1
                view.computed = view.known - 1
            view.blocks = blocks_for(view.computed, size) if self.cache else 0
        waiting = [self._waiting_view(request) for request in reversed(self.requeued)]
        end = self.head
        while times[end] <= now and len(waiting) <= self.policy.max_num_seqs:
            waiting.append(self._waiting_view(ids[end]))
            end += 1
        plan = self.policy.schedule(
            State(
                now=now,
                waiting=waiting,
                running=list(state_of.values()),
                free_blocks=self.free if self.cache else NEVER,
                block_size=size,
                max_num_seqs=self.policy.max_num_seqs,
                max_num_batched_tokens=self.policy.max_num_batched_tokens,
                no_more_arrivals=times[end] == NEVER,
            )
        )

        dropped = sum(victim.computed for victim in plan.preempt)
        for victim in plan.preempt:
            request = victim.index
            self._break_run(request, last_step, step)
            self.preempted[request] += 1
            self.emitted[request] = victim.emitted
            self.free += victim.blocks
            self.requeued.append(request)
            del self.running[request], state_of[request]
        decodes = context = tokens = pairs = seen = 0
        for view, chunk in plan.tokens.items():
            request = view.index
            if request not in self.running:
                if self.requeued:
                    self.requeued.pop()
                else:
                    self.head += 1
                    self.admitted[request] = now
                self.running[request] = None
                state_of[request] = view
            if self.cache:
                self.free -= blocks_for(view.computed + chunk, size) - blocks_for(view.computed, size)
            if view.emitted and view.computed == view.known - 1:
                decodes += 1
                context += view.known
            else:
                tokens += chunk
                pairs += chunk * view.computed + chunk * (chunk + 1) // 2
                seen += chunk + view.computed
        used = self.cache.num_blocks - self.free if self.cache else 0
        self.stretches.append(
            (step, now, decodes, context, tokens, len(self.running), used, len(plan.preempt), dropped)
        )
        now += self.step_time.seconds(decodes, context, tokens, pairs, seen)
        self.now, self.step = now, step + 1
        self.clock.append(now)

        # Everybody joins anew, from what they have computed now.
        self.decodes, self.context = 0, 0
        self.finishes, self.prefilling, self.phases = [], [], [0] * size
        for request, view in state_of.items():
            chunk = plan.tokens.get(view, 0)
            view.computed += chunk
            if request in last_step and not chunk:
                self._break_run(request, last_step, step)
                self.run_first[request] = step + 1
                self.emitted[request] = view.emitted
            if chunk and view.computed == view.known:
                if request not in last_step:
                    self.run_first[request] = step
                view.emitted += 1
                if view.emitted == self.output[request]:
                    self.run_last[request] = step
                    self.free += blocks_for(view.computed, size) if self.cache else 0
                    del self.running[request]
                    arrivals.answered(request, now, self.head)
                    continue
            elif not (request in last_step):
                self.prefilling.append([request, view.computed, view.known])
                continue
            self.decodes += 1
            self.context += view.known
            self.finishes.append((step + self.output[request] - view.emitted) * n + request)
            self.phases[(step + 1 - view.computed) % size] += 1
        heapify(self.finishes)

    def _waiting_view(self, request: int) -> Request:
        view = Request(request, self.arrivals.arrival[request], self.prompt[request])
        view.emitted = self.emitted[request]
        return view

    def _break_run(self, request: int, last_step: dict[int, int], step: int) -> None:
        """A sequence that decoded gets no token in this step: note the steps in which it did."""
        if request in last_step and self.run_first[request] < step:
            self.broken_runs.append((request, self.run_first[request], step - 1))
