"""What can be found in a prefix cache, by whom, and from when on."""

from __future__ import annotations

from bisect import insort
from collections.abc import Container
from typing import Any

from course.memory.prefix_queue import FreeBlocks
from course.memory.prefix_spans import Chain, Copy, Key, Span, split


class Findable(FreeBlocks):
    """Full blocks are found by what they hold, from the step in which their last token is scheduled.

    Whatever decodes have filled is written down in one go, when somebody looks for it or the request leaves.
    growing: who has a slot, by the next block of theirs that others may know.
    """

    __slots__ = ("_chains", "_decoding", "_step", "growing", "steady")

    def __init__(self, num_blocks: int, block_size: int):
        super().__init__(num_blocks, block_size)
        self._chains: dict[Any, Chain] = {}
        self.growing: dict[Key, list[Chain]] = {}
        self.steady, self._step = True, 0
        self._decoding: Container = ()  # who decodes in the step that is being made

    def chain(self, request: Any) -> Chain:
        """Of a request that has come."""
        chain = self._chains.get(request)
        if chain is None:
            chain = self._chains[request] = self._new_chain(request)
        return chain

    def _new_chain(self, request: Any) -> Chain:
        ids = request.prefix
        if not ids:
            return Chain(request, (), 1, 0)
        size, each, answers = self.block_size, request.prefix_block_size, request.prefix_answers
        if each < size:  # the hash of the last one stands for all up to there
            ids, each = ids[size // each - 1 :: size // each], size
        tokens = len(ids) * each
        if answers:
            self.steady = False  # an answer under way may be what another waits for
        elif tokens > request.prompt_tokens:
            tokens = request.prompt_tokens
        return Chain(request, ids, each // size, tokens // size)

    def found(self, chain: Chain, known: int) -> tuple[list[Span], int]:
        """The spans that hold a request's leading blocks, and how many these are, where it knows so many tokens.

        The last of the spans may be longer.
        """
        spans: list[Span] = []
        place, most, shared = 0, (known - 1) // self.block_size, chain.shared
        if not chain.rank and shared < most:
            most = shared  # what is like nobody else's is there only if it was computed before
        ids, flat, growing, there = chain.ids, shared if chain.parts == 1 else 0, self.growing, self._spans
        while place < most:
            key = ids[place] if place < flat else chain.key(place)
            if key in growing:
                for other in growing[key].copy():
                    self.settle(other, other.request.computed + (other.request in self._decoding))
            span = there.get(key)
            if span is None:
                if not spans or spans[-1].hi <= place:
                    break
                span = spans.pop()  # it has just become longer
            elif self._owed and not span.copies[0].holders:  # it may be gone, and others too
                self.evict_owed()
                return self.found(chain, known)
            spans.append(span)
            place = chain.same(span, most)
            if place < span.hi:
                break
        return spans, place

    def settle(self, chain: Chain, computed: int) -> None:
        """What a request that decodes has taken and filled since the last look."""
        size = self.block_size
        blocks, full = -(-computed // size), computed // size
        if blocks > chain.blocks:
            chain.blocks = blocks
        if full > chain.hashed:
            if chain.hashed >= chain.shared:
                chain.hashed = full
                return
            step = self._step if chain.request in self._decoding else self._step - 1
            self.register(chain, full, step - (computed - (chain.hashed + 1) * size), size)

    def settle_all(self) -> None:
        """The same of all whose next block others may know."""
        for chain in [chain for chains in self.growing.values() for chain in chains]:
            self.settle(chain, chain.request.computed)

    def register(self, chain: Chain, end: int, since: float, stride: int) -> None:
        """The blocks up to `end` can be found from now on. since, stride: see Copy."""
        place, chain.hashed = chain.hashed, end
        if place >= chain.shared:
            return  # nobody else looks for them: see keep_own
        spans, copies, shared = self._spans, chain.copies, end if end < chain.shared else chain.shared
        if chain.next is not None:
            self.stands_still(chain)
        while place < shared:
            key, stop = chain.key(place), shared
            span = spans.get(key)
            if span is None:
                if copies and (last := copies[-1].span).goes_on(since, stride, chain.rank):
                    last.hi = stop
                else:
                    span = spans[key] = Span(place, stop, chain)
                    span.copies.append(copy := Copy(span, {chain}, since, stride, chain.rank))
                    copies.append(copy)
            else:  # computed a second time
                if stop > place + 1 and (stride or any(copy.stride for copy in span.copies)):
                    stop = place + 1  # each may have come first in another block
                stop = chain.same(span, stop)
                if stop < span.hi:
                    split(spans, span, stop)
                span.forked = True
                copy = Copy(span, {chain}, since, stride, chain.rank)
                insort(span.copies, copy, key=Copy.age)
                copies.append(copy)
            since += stride * (stop - place)
            place = stop
        if end < chain.shared:
            self.grows_on(chain)

    def keep_own(self, chain: Chain) -> None:
        """Of a request that may come again: from now on it finds the blocks, too, that are like nobody else's."""
        copies, start = chain.copies, chain.found
        if start == chain.hashed:
            return
        if copies and copies[-1].span.lo >= chain.shared:
            copies[-1].span.hi = chain.hashed
            return
        span = self._spans[chain.key(start)] = Span(start, chain.hashed, chain)
        span.copies.append(copy := Copy(span, {chain}, 0, 0, chain.rank))
        copies.append(copy)

    def grows_on(self, chain: Chain) -> None:
        """Others may know the block that it fills next."""
        key = chain.next = chain.key(chain.hashed)
        if key in self.growing:
            self.growing[key].append(chain)
        else:
            self.growing[key] = [chain]

    def stands_still(self, chain: Chain) -> None:
        """It fills no more block that others may know."""
        chains = self.growing[chain.next]
        if len(chains) > 1:
            chains.remove(chain)
        else:
            del self.growing[chain.next]
        chain.next = None
