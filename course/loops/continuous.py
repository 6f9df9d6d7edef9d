"""`policies.Continuous`, simulated fast: the work depends on events, not on tokens.

The same steps as `stepwise`, to the last bit, found without touching a request that does not change:
- A sequence that decodes computes one token a step, so its last step is known when it joins, and goes on a heap; the
  context of all decodes is one running sum.
- It needs a KV block in every step in which its computed tokens are a multiple of the block size: once in `block_size`
  steps, at a fixed phase. A count of decodes by phase gives the blocks that any step needs; and nobody need count while
  all that hold a slot would fit the cache at their full length.
- While nobody joins or leaves, a stretch of steps is taken at once; its times are added up one after the other.

Three kinds of step: `run` takes stretches of decodes and admits prompts that fit whole; `chunk_step` also handles
prompts in chunks, requests that come back and a cache that may fill up; `contended_step`, where budget or blocks do not
suffice for all that run, asks the policy itself. Whoever is touched by the latter two is noted in `self.trace`; the
life of all others follows from the step of their last token.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from heapq import heappop, heappush

import numpy as np

from ..kvcache import KVCache, blocks_for
from ..policies.continuous import Continuous
from ..steptime import StepTimeModel
from ..workload import Workload
from .arrivals import NEVER, Arrivals, sums
from .contended import Contention
from .log import Log, check_length
from .stretch import VECTOR, Lines, stretch
from .trace import Trace


class ContinuousLoop:
    """State of one run. `run` keeps it in local names, and puts it back before the other two kinds of step."""

    finishes_end = 1 << 62  # the last in the heap of finishes, so that there is always a first

    def __init__(self, load: Workload, policy: Continuous, step_time: StepTimeModel, cache: KVCache | None):
        self.load, self.policy, self.step_time, self.cache = load, policy, step_time, cache
        self.size = cache.block_size if cache else 1
        self.arrivals = Arrivals(load)
        self.prompt, self.output = load.prompt_tokens.tolist(), load.output_tokens.tolist()
        self.length = (load.prompt_tokens + load.output_tokens).tolist()
        self.blocks = (-((1 - load.prompt_tokens - load.output_tokens) // self.size)).tolist()  # at full length
        n = self.requests = len(load)
        # finish code = last step x n + request; before the first token is out, the last step counts from that token's.
        self.codes = ((load.output_tokens - 1) * n + np.arange(n)).tolist()
        self.clock, self.idle = array("d"), [(0, 0.0)]
        self.trace = Trace()

        self.now, self.head = 0.0, 0
        self.requeued: list[int] = []  # preempted, the head of the queue last
        self.emitted: dict[int, int] = defaultdict(int)  # output tokens of those before they were preempted
        self.prefilling: list[list[int]] = []  # [request, computed, known] in order of admission
        self.decodes = self.context = 0  # sequences that decode, and the tokens they attend to in the next step
        self.finishes: list[int] = [self.finishes_end]
        self.reserved = 0  # blocks that those who hold a slot would take at full length
        # While `reserved` fits the cache no step can run out of blocks. Beyond it, `tight`, free blocks are counted:
        self.tight, self.free = False, 0
        self.phases = [0] * self.size  # decodes that need a block when step % size is this

    def run(self) -> Log:
        """Serve everybody."""
        n, size, total = self.requests, self.size, self.cache.num_blocks if self.cache else math.inf
        slots, budget = self.policy.max_num_seqs, self.policy.max_num_batched_tokens
        times, turns = self.arrivals.times, self.arrivals.next_turns
        length, blocks, codes = self.length, self.blocks, self.codes
        # Sums over all before a place in the queue. A prompt that must run in chunks counts as more than any budget.
        longest = self.policy.long_prefill_token_threshold or budget
        tokens = self.load.prompt_tokens
        tokens_to = sums(np.where(tokens <= longest, tokens, budget + 1))
        pairs_to, blocks_to = sums(tokens * (tokens + 1) // 2), sums(self.blocks)
        clock, tick, seconds_of, lines = self.clock, self.clock.append, self.step_time.seconds, Lines(self.step_time)
        requeued, prefilling, finishes, phases = self.requeued, self.prefilling, self.finishes, self.phases
        now, step, head, decodes, context = 0.0, 0, 0, 0, 0
        tight, free, reserved = False, 0, 0
        special = False  # the next step is none of the plain ones below

        while True:
            # ---- Those whose last token left with the step that ended now.
            ended = step * n
            while finishes[0] < ended:
                request = heappop(finishes) % n
                decodes -= 1
                context -= length[request]
                reserved -= blocks[request]
                if tight:
                    phases[(step + 1 - length[request]) % size] -= 1
                    free += blocks[request]
                if turns:
                    self.arrivals.answered(request, now, head)

            if special or prefilling or requeued:
                # ---- Prompts in chunks, requests that come back, blocks that run short.
                stop = NEVER
                if special or prefilling or decodes < slots:
                    self.now, self.head, self.decodes, self.context = now, head, decodes, context
                    self.tight, self.free, self.reserved = tight, free, reserved
                    progress, special = self.chunk_step(), False
                    now, head, decodes, context, step = self.now, self.head, self.decodes, self.context, len(clock)
                    tight, free, reserved = self.tight, self.free, self.reserved
                    finishes, phases, prefilling = self.finishes, self.phases, self.prefilling
                    if progress:
                        continue
            elif decodes >= slots:
                stop = NEVER
            elif times[head] <= now:
                # ---- A step with new prompts, each of them whole, in an order that was known beforehand.
                end, last = head + 1, head + slots - decodes
                while end < last and times[end] <= now:
                    end += 1
                tokens = tokens_to[end] - tokens_to[head]
                held = reserved + blocks_to[end] - blocks_to[head]
                if tokens > budget - decodes or held > total or tight or turns:
                    special = True
                    continue
                reserved = held
                now += seconds_of(decodes, context, tokens, pairs_to[end] - pairs_to[head], tokens)
                tick(now)
                for request in range(head, end):  # without turns they stand in the queue as they are numbered
                    code = codes[request] = codes[request] + ended
                    heappush(finishes, code)
                step += 1
                context += decodes + tokens + end - head
                decodes += end - head
                head = end
                continue
            else:
                stop = times[head]
                if not decodes:
                    if stop == NEVER:
                        break
                    now = stop
                    self.idle.append((step, now))
                    continue

            # ---- A stretch of decodes: until the first of them ends, somebody can join, or the blocks run out.
            count = finishes[0] // n + 1 - step
            if tight and decodes * (count // size + 1) > free:
                count = self.steps_before_shortage(step, count, free)
                if not count:
                    special = True
                    continue
            first, (base, slope) = step, lines[decodes]
            if count < VECTOR or stop - now < VECTOR * base:
                end = step + count
                while True:
                    now += base + slope * context
                    tick(now)
                    context += decodes
                    step += 1
                    if now >= stop or step == end:
                        break
            else:
                check_length(clock)
                clock.frombytes(stretch(now, stop, count, decodes, context, base, slope))
                if stop < NEVER:
                    del clock[bisect_left(clock, stop, step) + 1 :]
                now = clock[-1]
                step = len(clock)
                context += decodes * (step - first)
            if tight:
                free -= self.blocks_taken(first, step - first, decodes)
        return self.trace.log(self.load, self.arrivals, clock, self.idle, np.array(codes) // n)

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
                last, request = divmod(code, self.requests)
                computed = self.length[request] - 2 - last + len(self.clock)
                self.phases[(len(self.clock) - computed) % self.size] += 1
                used += blocks_for(computed, self.size)
        used += sum(blocks_for(computed, self.size) for _, computed, _ in self.prefilling)
        self.free = self.cache.num_blocks - used

    def chunk_step(self) -> bool:
        """A step with prompts in chunks, or with requests that come back. False where nobody could be admitted."""
        check_length(self.clock)
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
        self.reserved += self.blocks[request]
        self.trace.admit(request, step, self.head)

    def join(self, request: int, known: int, step: int) -> None:
        """From the next step on the request decodes; its last token, perhaps that of this step, is some steps away."""
        self.decodes += 1
        self.context += known
        self.phases[(step + 2 - known) % self.size] += 1  # counts where `tight`; else it is made anew by then
        to_go = self.prompt[request] + self.output[request] - known
        code = self.codes[request] = (step + to_go) * self.requests + request
        heappush(self.finishes, code)

    def clear_decodes(self) -> None:
        """Nobody decodes any more, until they join again."""
        self.decodes = self.context = 0
        self.finishes, self.phases, self.prefilling = [self.finishes_end], [0] * self.size, []
