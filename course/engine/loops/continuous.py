"""`policies.Continuous`, simulated fast: the work depends on events, not on tokens.

The same steps as `stepwise`, to the last bit, found without touching a request that does not change:
- A sequence that decodes computes one token a step, so the step it leaves in is known when it joins, and goes on a
  heap; the context of all decodes is one running sum.
- It needs a KV block in every step in which its computed tokens are a multiple of the block size: once in `block_size`
  steps, at a fixed phase. A count of decodes by phase gives the blocks that any step needs; and nobody need count while
  all that hold a slot would fit the cache at their full length.
- While nobody joins or leaves, a stretch of steps is taken at once; its times are added up one after the other.

Three kinds of step: `run_plain` takes stretches of decodes and admits prompts that fit whole; `chunk_step` also handles
prompts in chunks, requests that come back and a cache that may fill up; `Contention`, where budget or blocks do not
suffice for all that run, asks the policy itself. Whoever is touched by the latter two is noted in `self.trace`; the
life of all others follows from the step of their last token.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from heapq import heappop, heappush

import numpy as np

from course.engine.loops.arrivals import NEVER, Arrivals
from course.engine.loops.contended import Contention
from course.engine.loops.log import Log, check_length
from course.engine.loops.plain import run_plain
from course.engine.loops.stretch import Lines, stretch
from course.engine.loops.trace import Trace
from course.memory.kvcache import KVCache, blocks_for
from course.policies.continuous import Continuous
from course.steptime import StepTimeModel
from course.workload import Workload


class ContinuousLoop:
    """State of one run. A finish code is n x (the first step without the request) + request."""

    finishes_end = 1 << 62  # the last in the heap of finishes, so that there is always a first

    def __init__(self, load: Workload, policy: Continuous, step_time: StepTimeModel, cache: KVCache | None):
        prompts, outputs, n = load.prompt_tokens, load.output_tokens, len(load)
        self.load, self.policy, self.step_time, self.lines = load, policy, step_time, Lines(step_time)
        self.requests, self.arrivals = n, Arrivals(load)
        self.size = cache.block_size if cache else 1
        needed = -((1 - prompts - outputs) // self.size)  # blocks at full length
        if cache is not None and min(policy.max_num_seqs, n) * int(needed.max()) <= cache.num_blocks:
            cache = None  # whoever gets the slots, blocks never run short: no need to count them
        self.cache, self.total = cache, cache.num_blocks if cache else 0
        self.prompt, self.output = prompts.tolist(), outputs.tolist()
        self.length = (prompts + outputs).tolist()
        self.blocks = needed.tolist() if cache else []
        # A prompt that must run in chunks counts as more than any budget.
        longest = policy.long_prefill_token_threshold or policy.max_num_batched_tokens
        whole = prompts <= longest
        self.whole = (
            self.prompt if whole.all() else np.where(whole, prompts, policy.max_num_batched_tokens + 1).tolist()
        )
        self.pairs = (prompts * (prompts + 1) // 2).tolist()
        self.codes = (outputs * n + np.arange(n)).tolist()  # finish codes of those who join in step 0
        self.clock, self.idle = array("d"), [(0, 0.0)]
        self.trace = Trace()

        self.now, self.head = 0.0, 0
        self.special = False  # the next step is none of the plain ones
        self.requeued: list[int] = []  # preempted, the head of the queue last
        self.emitted: dict[int, int] = defaultdict(int)  # output tokens of those before they were preempted
        self.prefilling: list[list[int]] = []  # [request, computed, known] in order of admission
        self.decodes = self.context = 0  # sequences that decode, and the tokens they attend to in the next step
        self.finishes: list[int] = [self.finishes_end]
        self.answered: list[int] = []  # finish codes of those who have left
        self.reserved = 0  # blocks that those who hold a slot would take at full length
        # While `reserved` fits the cache no step can run out of blocks. Beyond it, `tight`, free blocks are counted:
        self.tight, self.free = False, 0
        self.phases = [0] * self.size  # decodes that need a block when step % size is this

    def run(self) -> Log:
        """Serve everybody."""
        turns, budget = self.arrivals.next_turns, self.policy.max_num_batched_tokens
        whole = [*self.whole, 0]  # a prompt that the plain loop would hand back at once need not go there
        while len(self.answered) < self.requests:
            if self.special or self.prefilling or self.requeued or self.tight or turns or whole[self.head] > budget:
                self.run_carefully()
            else:
                run_plain(self)
        last = np.empty(self.requests, dtype=np.int64)
        leave, request = np.divmod(np.array(self.answered), self.requests)
        last[request] = leave - 1
        return self.trace.log(self.load, self.arrivals, self.clock, self.idle, last)

    def run_carefully(self) -> None:
        """A step in which somebody joins or computes a chunk, if there can be one; else a stretch of decodes."""
        self.leave()
        stop, slots = self.arrivals.times[self.head], self.policy.max_num_seqs
        waiting = bool(self.requeued) or stop <= self.now
        if self.special or self.prefilling or (waiting and self.decodes < slots):
            self.special = False
            if self.chunk_step():
                return
            waiting = True
        if waiting or self.decodes >= slots:  # nobody joins before somebody leaves
            stop = NEVER
        elif not self.decodes:
            if stop < NEVER:
                self.now = stop
                self.idle.append((len(self.clock), stop))
            return
        step, decodes = len(self.clock), self.decodes
        count = self.finishes[0] // self.requests - step
        if self.tight and decodes * (count // self.size + 1) > self.free:
            count = self.steps_before_shortage(step, count, self.free)
            if not count:
                self.special = True
                return
        base, slope = self.lines[decodes]
        self.now = stretch(self.clock, self.now, stop, count, decodes, self.context, base, slope)
        taken = len(self.clock) - step
        self.context += decodes * taken
        if self.tight:
            self.free -= self.blocks_taken(step, taken, decodes)

    def leave(self) -> None:
        """Those whose last token left with the step that ended now."""
        step = len(self.clock)
        while self.finishes[0] // self.requests <= step:
            code = heappop(self.finishes)
            self.answered.append(code)
            request = code % self.requests
            self.decodes -= 1
            self.context -= self.length[request]
            if self.cache is not None:
                self.reserved -= self.blocks[request]
                if self.tight:
                    self.phases[(step + 1 - self.length[request]) % self.size] -= 1
                    self.free += self.blocks[request]
            self.arrivals.answered(request, self.now, self.head)

    def steps_before_shortage(self, step: int, count: int, free: int) -> int:
        """How many of the next `count` steps of decodes the free blocks last for."""
        for taken in range(count):
            free -= self.phases[(step + taken) % self.size]
            if free < 0:
                return taken
        return count

    def blocks_taken(self, step: int, count: int, decodes: int) -> int:
        """KV blocks that `count` steps of decodes alone take, from this step on."""
        rounds, rest = divmod(count, self.size)
        at = step % self.size
        wrapped = max(0, at + rest - self.size)
        return decodes * rounds + sum(self.phases[at : at + rest]) + sum(self.phases[:wrapped])

    def choose_accounting(self) -> None:
        """Exact block counts where those who may be admitted now could fill the cache; not where there is room."""
        if self.cache is None:
            return
        times, head = self.arrivals.times, self.head
        end = bisect_right(times, self.now, head, min(len(times), head + self.policy.max_num_seqs))
        may_come = [*self.requeued, *self.arrivals.ids[head:end]]
        wanted = self.reserved + sum(self.blocks[request] for request in may_come)
        if wanted > self.cache.num_blocks and not self.tight:
            self.tighten()
        elif self.tight and wanted < 0.9 * self.cache.num_blocks:
            self.tight = False

    def tighten(self) -> None:
        """Count blocks exactly from here on. Until then all that run would fit even at their full length."""
        self.tight, self.phases, used = True, [0] * self.size, 0
        for code in self.finishes:
            if code != self.finishes_end:
                leave, request = divmod(code, self.requests)
                computed = self.length[request] - 1 - leave + len(self.clock)
                self.phases[(len(self.clock) - computed) % self.size] += 1
                used += blocks_for(computed, self.size)
        used += sum(blocks_for(computed, self.size) for _, computed, _ in self.prefilling)
        self.free = self.cache.num_blocks - used

    def chunk_step(self) -> bool:
        """A step with prompts in chunks, or with requests that come back. False where nobody could be admitted."""
        check_length(self.clock, self.trace.chunks)
        step, size, trace = len(self.clock), self.size, self.trace
        self.choose_accounting()
        threshold, left = self.policy.long_prefill_token_threshold, self.policy.max_num_batched_tokens - self.decodes
        free = self.free - self.phases[step % size]
        decodes, context = self.decodes, self.context
        plan: list[tuple[int, int, int, int]] = []  # request, chunk, computed, known
        for request, computed, known in self.prefilling:
            chunk = min(known - computed, threshold or known, left)  # the budget cuts short nobody but the last
            left -= chunk
            free -= blocks_for(computed + chunk, size) - blocks_for(computed, size)
            plan.append((request, chunk, computed, known))
        if self.tight and free < 0:
            Contention(self).step()
            return True

        slots = self.policy.max_num_seqs - self.decodes - len(plan)
        times, ids = self.arrivals.times, self.arrivals.ids
        while left > 0 and slots > 0:
            if self.requeued:
                request = self.requeued[-1]
            elif times[self.head] <= self.now:
                request = ids[self.head]
            else:
                break
            known = self.prompt[request] + self.emitted.get(request, 0)
            chunk = min(known, threshold or known)
            if chunk > left:
                if not self.policy.enable_chunked_prefill:
                    break
                chunk = left
            if self.tight:
                if blocks_for(known if self.policy.scheduler_reserve_full_isl else chunk, size) > free:
                    break
                free -= blocks_for(chunk, size)
            self.admit(request, step)
            plan.append((request, chunk, 0, known))
            left -= chunk
            slots -= 1
        if not plan:
            return False

        tokens = pairs = seen = 0
        for request, chunk, computed, known in plan:
            if self.emitted.get(request) and computed == known - 1:
                decodes += 1
                context += known
                trace.decode(request, step, known)
            else:
                tokens += chunk
                pairs += chunk * computed + chunk * (chunk + 1) // 2
                seen += computed + chunk
                trace.chunk(request, step, chunk, computed)
        self.now += self.step_time.seconds(decodes, context, tokens, pairs, seen)
        self.clock.append(self.now)
        self.context += self.decodes
        self.free = free
        self.prefilling = []
        for request, chunk, computed, known in plan:
            if computed + chunk < known:
                self.prefilling.append([request, computed + chunk, known])
            else:
                trace.first_token(request, step, known)
                self.join(request, known + 1, step)
        return True

    def admit(self, request: int, step: int) -> None:
        """Take the request at the head of the queue into a slot."""
        if self.requeued:
            self.requeued.pop()
        else:
            self.head += 1
        if self.cache is not None:
            self.reserved += self.blocks[request]
        self.trace.admit(request, step, self.head)

    def join(self, request: int, known: int, step: int) -> None:
        """From the next step on the request decodes, unless the token of this step was its last."""
        self.decodes += 1
        self.context += known
        self.phases[(step + 2 - known) % self.size] += 1  # counts where `tight`; else it is made anew by then
        to_go = self.prompt[request] + self.output[request] - known
        heappush(self.finishes, (step + to_go + 1) * self.requests + request)

    def clear_decodes(self) -> None:
        """Nobody decodes any more, until they join again."""
        self.decodes = self.context = 0
        self.finishes, self.phases, self.prefilling = [self.finishes_end], [0] * self.size, []
