"""Policies that a learner might write, each in a few plain lines; the tests serve with them."""

from course.policies import Policy, Schedule, blocks_needed
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


class Decided(Policy):
    """What a function of tests/helpers/oracle_own.py says. It knows requests by their numbers only.

    in_words: where everybody decodes, `decodes=True` in place of a list of them.
    """

    def __init__(self, decide, max_num_seqs, max_num_batched_tokens, in_words):
        self.decide, self.in_words = decide, in_words
        self.max_num_seqs, self.max_num_batched_tokens = max_num_seqs, max_num_batched_tokens

    def schedule(self, state):
        everybody = {request.index: request for request in (*state.waiting, *state.running)}
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
                decoding=[request.index for request in state.running if request not in state.prefilling],
                free=state.free_blocks,
            )
        )
        if isinstance(answer, float):
            return Schedule(until=answer)
        victims, turn = answer
        until = self.decide.holds_until or None
        decoding = [who for who in everybody if everybody[who] in state.running and who not in victims]
        decoding = [who for who in decoding if everybody[who] not in state.prefilling]
        preempt = [everybody[who] for who in victims]
        if self.in_words and set(decoding) <= turn.keys():
            tokens = {everybody[who]: tokens for who, tokens in turn.items() if who not in decoding}
            return Schedule(tokens, preempt, decodes=True, until=until)
        return Schedule({everybody[who]: tokens for who, tokens in turn.items()}, preempt, until=until)
