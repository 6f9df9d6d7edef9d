"""Policies that a learner might write, each in a few plain lines; the tests serve with them."""

from operator import attrgetter

from course.policies import Continuous, Policy, Schedule, blocks_needed
from tests.helpers.oracle_own import Present


class Own(Policy):
    """Whatever `decide(state)` says."""

    def __init__(self, decide, max_num_seqs=4, max_num_batched_tokens=64):
        self.decide = decide
        self.max_num_seqs, self.max_num_batched_tokens = max_num_seqs, max_num_batched_tokens

    def schedule(self, state):
        return self.decide(state)


class InOrder(Policy):
    """Whoever runs goes on; the queue is taken in the order of `key`. Out of blocks, the last admitted gives way."""

    def __init__(self, max_num_seqs, max_num_batched_tokens):
        self.max_num_seqs, self.max_num_batched_tokens = max_num_seqs, max_num_batched_tokens

    def key(self, request):
        raise NotImplementedError

    def schedule(self, state):
        left, free = state.max_num_batched_tokens, state.free_blocks
        tokens, preempt, running = {}, [], list(state.running)
        for request in state.running:
            if request in preempt or left == 0:
                break
            chunk = min(request.remaining, left)
            while blocks_needed(request, chunk, state.block_size) > free and request in running:
                preempt.append(running.pop())
                free += preempt[-1].blocks
            if request in running:
                tokens[request] = chunk
                left -= chunk
                free -= blocks_needed(request, chunk, state.block_size)
        for request in sorted(state.waiting, key=self.key) if not preempt else ():
            chunk = min(request.remaining, left)
            if not chunk or len(running) == state.max_num_seqs:
                break
            if blocks_needed(request, request.remaining, state.block_size) > free:
                break
            running.append(request)
            tokens[request] = chunk
            left -= chunk
            free -= blocks_needed(request, chunk, state.block_size)
        return Schedule(tokens, preempt)


class ShortestPromptFirst(InOrder):
    def key(self, request):
        return request.prompt_tokens, request.index


class LastComeFirstServed(InOrder):
    def key(self, request):
        return -request.arrival, -request.index


class OneAtATime(Policy):
    """The example in the docstring of course.policies.base."""

    max_num_seqs, max_num_batched_tokens = 8, 4096

    def schedule(self, state):
        turn = (state.running or state.waiting)[:1]
        return Schedule(tokens={request: request.remaining for request in turn})


class NewestPreempts(Policy):
    """One at a time, and whoever came last sends away the one that runs, which loses all it has computed."""

    max_num_seqs, max_num_batched_tokens = 1, 4096

    def schedule(self, state):
        if not state.waiting and not state.running:
            return Schedule()
        newest = max((*state.running, *state.waiting), key=lambda request: (request.arrival, request.index))
        return Schedule({newest: newest.remaining}, preempt=[r for r in state.running if r is not newest])


class TakingTurns(Policy):
    """Admits all it can, and gives a token to every other running request in each step."""

    def __init__(self, max_num_seqs, max_num_batched_tokens):
        self.max_num_seqs, self.max_num_batched_tokens = max_num_seqs, max_num_batched_tokens
        self.odd = False

    def schedule(self, state):
        self.odd = not self.odd
        slots = state.max_num_seqs - len(state.running)
        everybody = [*state.running, *state.waiting[:slots]]
        turn = everybody[self.odd :: 2] or everybody
        return Schedule({request: 1 for request in turn[: state.max_num_batched_tokens]})


class FairShare(Continuous):
    """Virtual token counters: the tenant that was served least goes first (Sheng et al., OSDI 2024).

    A prompt token counts 1, a token of the answer 2. A tenant that comes back is lifted to the least of those who wait.
    """

    tenant = attrgetter("tenant")

    def __init__(self, max_num_seqs, max_num_batched_tokens):
        super().__init__(max_num_seqs, max_num_batched_tokens)
        self.served, self.counted, self.charged, self.waited = {}, {}, set(), set()

    def count(self, state):
        """Add what has left since the last look, also of those who are gone by now."""
        running = set(state.running)
        for request, before in list(self.counted.items()):
            self.served[request.tenant] += 2 * (request.emitted - before)
            self.counted[request] = request.emitted
            if request not in running:
                del self.counted[request]
        self.counted.update({request: request.emitted for request in running if request not in self.counted})

    def schedule(self, state):
        lines = state.waiting.grouped_by(FairShare.tenant)
        back = lines.keys() - self.waited
        if back or (lines and state.free_slots):
            self.count(state)
            least = min((self.served.get(tenant, 0) for tenant in lines.keys() - back), default=0)
            self.served |= {tenant: max(self.served.get(tenant, 0), least) for tenant in back}
        answer = super().schedule(state, holds=True)  # counters only matter when somebody is let in
        for request in answer.tokens:
            if request.index not in self.charged:
                self.charged.add(request.index)
                self.served[request.tenant] += request.prompt_tokens
                self.counted[request] = request.emitted
        preempted = {request.tenant for request in answer.preempt}
        self.waited = {t for t, line in lines.items() if any(r not in answer.tokens for r in line)} | preempted
        return answer

    def queue(self, state, waiting):
        lines = {tenant: iter(line) for tenant, line in waiting.grouped_by(FairShare.tenant).items()}
        served = dict(self.served)
        while lines:
            tenant = min(lines, key=served.__getitem__)
            request = next(lines[tenant], None)
            if request is None:
                del lines[tenant]
            else:
                served[tenant] += request.prompt_tokens
                yield request


class Decided(Policy):
    """What a function of tests/helpers/oracle_own.py says. It knows requests by their numbers only.

    in_words: where everybody decodes, `decodes=True` in place of a list of them.
    """

    def __init__(self, decide, max_num_seqs, max_num_batched_tokens, in_words):
        self.decide, self.in_words, self.had_slot = decide, in_words, set()
        self.max_num_seqs, self.max_num_batched_tokens = max_num_seqs, max_num_batched_tokens

    def schedule(self, state):
        everybody = {request.index: request for request in (*state.waiting, *state.running)}
        self.had_slot |= {request.index for request in state.running}
        answer = self.decide(
            Present(
                slots=state.max_num_seqs,
                budget=state.max_num_batched_tokens,
                block_size=state.block_size,
                now=state.now,
                last_end=state.last_step_end or None,
                queue=[request.index for request in state.waiting],
                batch=[request.index for request in state.running],
                arrival={who: request.arrival for who, request in everybody.items()},
                remaining={who: request.remaining for who, request in everybody.items()},
                computed={who: request.computed for who, request in everybody.items()},
                emitted={who: request.emitted for who, request in everybody.items()},
                prompt={who: request.prompt_tokens for who, request in everybody.items()},
                had_slot={who: who in self.had_slot for who in everybody},
                decoding=[request.index for request in state.running if request not in state.prefilling],
                free=state.free_blocks,
            )
        )
        if isinstance(answer, float):
            return Schedule(until=answer)
        victims, turn, *rejects = answer
        reject = {everybody[who]: later for who, later in rejects[0].items()} if rejects else ()
        until = self.decide.holds_until or None
        decoding = [who for who in everybody if everybody[who] in state.running and who not in victims]
        decoding = [who for who in decoding if everybody[who] not in state.prefilling]
        preempt = [everybody[who] for who in victims]
        if self.in_words and set(decoding) <= turn.keys():
            tokens = {everybody[who]: tokens for who, tokens in turn.items() if who not in decoding}
            return Schedule(tokens, preempt, decodes=bool(turn), until=until, reject=reject)
        turn = {everybody[who]: tokens for who, tokens in turn.items()}
        return Schedule(turn, preempt, until=until, reject=reject)
