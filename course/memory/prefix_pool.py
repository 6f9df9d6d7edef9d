"""KV blocks that keep what was computed in them until somebody else needs the room, found again by what they hold.

The rules are those of vLLM V1's KVCacheManager:

- Only a full block can be found, and it can from the moment when its last token is scheduled, answers included. What
  is found is a request's leading blocks up to the first that is missing, and never its last token.
- Several blocks may hold the same. The first registered is shared; if it is gone, the next.
- Blocks that nobody holds stand in a queue and are taken from its head, whatever is in them. A request gives its blocks
  back from its last one to its first. Up to 0.32 all go to the end of the queue; from 0.33 on one that cannot be found
  goes to its head.
- A victim's blocks are free when whoever needs them takes his, not before: those ahead of him take others.
- What is drafted cannot be found. Accepted tokens can, with the blocks that they fill, when the step has ended. (vLLM
  says so when the request is scheduled next, and so not of an answer that is complete; and what is found ends a block
  earlier with an EAGLE head or MTP, which need the hidden states behind it.)
- Blocks of a step's drafts are the next to be reused: in vLLM they stay with their request for its own next tokens.
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Container, Iterable, Iterator
from itertools import accumulate, repeat
from typing import Any

from course.memory.block_pool import BlockPool
from course.memory.prefix_plan import PrefixPlan
from course.memory.prefix_spans import Chain, Copy, Key, Node, Queue, Span, split


class PrefixPool(BlockPool):
    """Blocks that are shared by those who begin alike.

    unhashed_first: whether freed blocks that cannot be found are reused before all others. shared: blocks that requests
    would hold besides in each step if each had its own. lookups: (row, tokens known, tokens found) of each admission.
    Not thought of: executors that ask for block tables.
    """

    __slots__ = (
        "_admissions",
        "_bag",
        "_chains",
        "_decoding",
        "_held",
        "_lost",
        "_lost_blocks",
        "_owed",
        "_spans",
        "_step",
        "blank",
        "growing",
        "lookups",
        "queue",
        "shared",
        "steady",
        "unhashed_first",
    )  # fmt: skip

    # As in BlockPool, but never infinite, and never missing.
    free: int
    num_blocks: int
    column: array
    shared: array
    lookups: array

    def __init__(self, num_blocks: int, block_size: int, unhashed_first: bool = False):
        super().__init__(num_blocks, block_size)
        self.unhashed_first = unhashed_first
        self._spans: dict[Key, Span] = {}  # by the key of their first block
        self._chains: dict[Any, Chain] = {}
        self.growing: dict[Key, list[Chain]] = {}  # who has a slot, by the next block of theirs that others may know
        self.queue, self.blank = Queue(), num_blocks  # free blocks; how many at its head hold nothing
        self._lost: list[tuple[int, Queue]] = []  # what victims of this step had, not in the queue yet
        self._lost_blocks = self._held = self._step = self._admissions = 0
        self._owed = 0  # blocks that are taken, but still stand at the head of the queue: it is seldom asked which
        self._bag = 0  # blocks that decodes took, and which are not in anybody's chain yet
        self._decoding: Container = ()  # who decodes in the step that is being made
        self.shared, self.lookups, self.steady = array("q"), array("q"), True

    # Of one request

    def hit(self, request: Any) -> int:
        """See BlockPool. 0 for a request with a slot."""
        chain = self.chain(request)
        return 0 if chain.blocks else self.found(chain, request.known)[1] * self.block_size

    def admit(self, request: Any) -> int:
        """See BlockPool."""
        self._bring_home(len(self._lost))
        chain = self.chain(request)
        spans, end = self.found(chain, request.known)
        if spans and end < spans[-1].hi:
            split(self._spans, spans[-1], end)
        if spans:
            spans[-1].forked = True
        for span in spans:
            copy = span.copies[0]
            if not copy.holders:
                copy.unlink()
                self.free -= span.hi - span.lo
            copy.holders.add(chain)
            chain.copies.append(copy)
        self._admissions += 1
        chain.hashed, chain.blocks, chain.rank = end, end, self._admissions
        self._held += end
        self.lookups.extend((request.index, request.known, end * self.block_size))
        return end * self.block_size

    def need(self, request: Any, tokens: int) -> int:
        """See BlockPool."""
        if request.computed or request in self._reserved:
            return super().need(request, tokens)
        return PrefixPlan(self).need(request, tokens)

    def take(self, request: Any, tokens: int, computed: int | None = None) -> None:
        """See BlockPool."""
        if not self._reserved or request not in self._reserved:
            self._take(request, tokens, request.computed if computed is None else computed, self._step)

    def accept(self, request: Any, tokens: int) -> None:
        """See BlockPool."""
        if not self._reserved or request not in self._reserved:
            # Later than all that was scheduled in the step that has ended, and before what the next one computes.
            self._take(request, tokens, request.computed, self._step - 0.5)

    def _take(self, request: Any, tokens: int, computed: int, step: float) -> None:
        """step: when the blocks that are full then can be found."""
        chain, size = self._chains.get(request) or self.chain(request), self.block_size
        if computed > chain.hashed * size:
            self.settle(chain, computed)
        blocks, full = -(-(computed + tokens) // size), (computed + tokens) // size
        if blocks > chain.blocks:
            self._take_blocks(blocks - chain.blocks)
            self._held += blocks - chain.blocks
            chain.blocks = blocks
        if full > chain.hashed:
            self._register(chain, full, step, 0)
        elif chain.next is None and chain.hashed < chain.shared:
            self._grows(chain)

    def spend(self, blocks: int, decoding: Container = ()) -> None:
        """See BlockPool."""
        self._decoding = decoding
        if blocks:
            self.lend(blocks)
            self._bag += blocks

    def lend(self, blocks: int) -> None:
        """See BlockPool."""
        self._held += blocks
        while self._lost and blocks > self.free - self._lost_blocks:  # one after the other, each takes one
            ready = max(self.free - self._lost_blocks, 0)
            self._take_blocks(ready)
            blocks -= ready
            self._bring_home(1)
        self._take_blocks(blocks)

    def take_back(self, blocks: int) -> None:
        """See BlockPool."""
        self.free += blocks
        self._held -= blocks
        self.evict_owed()
        self.blank += blocks

    def reserve(self, request: Any, tokens: int) -> None:
        """See BlockPool. A padded batch finds nothing, and nothing of it can be found."""
        self._reserved[request] = blocks = self.blocks_for(tokens)
        self._take_blocks(blocks)
        self._held += blocks

    def forget(self, request: Any) -> int:
        """See BlockPool."""
        self._chains.pop(request, None)
        return 0

    def release(self, request: Any, computed: int | None = None) -> None:
        """See BlockPool. What others hold too stays with them."""
        if request in self._reserved:
            blocks = self._reserved.pop(request)
            self.free += blocks
            self._held -= blocks
            self.evict_owed()
            self.blank += blocks
            return
        chain = self._chains.pop(request)
        blank = self._give_back(chain, self.queue, request.computed if computed is None else computed)
        if blank:
            self.evict_owed()
            self.blank += blank

    def release_all(self, gone: Iterable[tuple[Any, int]]) -> None:
        """See BlockPool. In order of admission, as vLLM goes through a batch."""
        gone = list(gone)
        if len(gone) == 1:
            return self.release(*gone[0])
        for request, computed in sorted(gone, key=lambda one: self._chains[one[0]].rank):
            self.release(request, computed)

    def preempt(self, request: Any) -> int:
        """See BlockPool. What it finds again is not taken off."""
        queue, before, tokens, chain = Queue(), self.free, request.computed, self._chains[request]
        self.settle(chain, tokens)
        self.keep_own(chain)
        self._lost.append((self._give_back(chain, queue, tokens), queue))
        self._lost_blocks += self.free - before
        return tokens

    # Of a step

    def plan(self, due: int = 0, decoding: Container = ()) -> PrefixPlan:
        """See BlockPool."""
        for key, chains in self.growing.items():
            if len(chains) > 1 or key in self._spans:  # what is computed twice cuts spans: not while a plan looks
                self._settle_all()
                break
        return PrefixPlan(self, due, decoding)

    def note(self) -> None:
        """See BlockPool."""
        used = self.num_blocks - self.free
        self.column.append(used)
        self.shared.append(self._held - used)
        if self._lost:
            self._bring_home(len(self._lost))
        self._step += 1
        self._decoding = ()

    def decode(self, blocks: Iterator[int]) -> None:
        """See BlockPool."""
        self.spend(next(blocks))
        if self._lost:
            self._bring_home(len(self._lost))
        used, begun, column = self.num_blocks - self.free, self._step, self.column
        column.extend(accumulate(blocks, initial=used))
        self._step = len(column)
        self.shared.extend(repeat(self._held - used, self._step - begun))
        more = column[-1] - used
        self.free -= more
        self._owed += more
        self._bag += more
        self._held += more
        self._decoding = ()

    def table(self, request: Any, tokens: int = 0) -> list[int]:
        """Raises ValueError: which block has which number is not kept."""
        raise ValueError("a prefix cache does not keep which block has which number: serve with prefix_caching=False")

    # What is there

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
        self.steady = self.steady and not answers  # an answer under way may be what another waits for
        tokens = len(ids) * each
        tokens = tokens if answers else min(tokens, request.prompt_tokens)
        return Chain(request, ids, each // size, tokens // size)

    def found(self, chain: Chain, known: int) -> tuple[list[Span], int]:
        """The spans that hold a request's leading blocks, and how many these are, where it knows so many tokens.

        The last of the spans may be longer.
        """
        spans: list[Span] = []
        if not chain.shared and not chain.rank:
            return spans, 0
        place, most, growing = 0, (known - 1) // self.block_size, self.growing
        ids, flat = chain.ids, chain.shared if chain.parts == 1 else 0
        while place < most:
            key = ids[place] if place < flat else chain.key(place)
            if key in growing:
                for other in growing[key].copy():
                    self.settle(other, other.request.computed + (other.request in self._decoding))
            span = self._spans.get(key)
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
            self._bag -= blocks - chain.blocks
            chain.blocks = blocks
        if full > chain.hashed:
            step = self._step if chain.request in self._decoding else self._step - 1
            self._register(chain, full, step - (computed - (chain.hashed + 1) * size), size)

    def _settle_all(self) -> None:
        for chain in [chain for chains in self.growing.values() for chain in chains]:
            self.settle(chain, chain.request.computed)

    def _register(self, chain: Chain, end: int, since: float, stride: int) -> None:
        """The blocks up to `end` can be found from now on. since, stride: see Copy."""
        place, chain.hashed = chain.hashed, end
        if place >= chain.shared:
            return  # nobody else looks for them: see keep_own
        spans, shared = self._spans, min(end, chain.shared)
        if chain.next is not None:
            self._stands_still(chain)
        while place < shared:
            key, stop = chain.key(place), shared
            span = spans.get(key)
            if (
                span is None
                and (last := chain.copies[-1].span if chain.copies else None)
                and last.goes_on(since, stride, chain.rank)
            ):
                last.hi = stop
            elif span is None:
                span = spans[key] = Span(place, stop, chain)
                span.copies.append(copy := Copy(span, {chain}, since, stride, chain.rank))
                chain.copies.append(copy)
            else:  # computed a second time
                by_chunks = not stride and not any(copy.stride for copy in span.copies)
                stop = chain.same(span, stop if by_chunks else place + 1)
                if stop < span.hi:
                    split(spans, span, stop)
                span.forked = True
                insort(span.copies, copy := Copy(span, {chain}, since, stride, chain.rank), key=lambda one: one.age)
                chain.copies.append(copy)
            since += stride * (stop - place)
            place = stop
        if end < chain.shared:
            self._grows(chain)

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

    def _grows(self, chain: Chain) -> None:
        chain.next = chain.key(chain.hashed)
        self.growing.setdefault(chain.next, []).append(chain)

    def _stands_still(self, chain: Chain) -> None:
        chains = self.growing[chain.next]
        chains.remove(chain)
        if not chains:
            del self.growing[chain.next]
        chain.next = None

    # The queue of free blocks

    def _take_blocks(self, blocks: int) -> None:
        """So many from the head of the queue; what was in them is gone."""
        while self._lost and blocks > self.free - self._lost_blocks:
            self._bring_home(1)
        self.free -= blocks
        self._owed += blocks

    def evict_owed(self) -> None:
        """Take the blocks that are owed from the head of the queue; what was in them cannot be found any more."""
        blocks, self._owed = self._owed, 0
        while blocks > 0:
            if self.blank:
                taken = min(blocks, self.blank)
                self.blank -= taken
            else:
                node = self.queue.after
                if node is self.queue:
                    return  # more than there are: the engine takes notice
                taken = self._evict(node, blocks) if isinstance(node, Copy) else self._use(node)
            blocks -= taken

    def _use(self, node: Node) -> int:
        node.unlink()
        self.blank += node.blocks
        return 0

    def _evict(self, copy: Copy, most: int) -> int:
        """Forget up to `most` blocks of a free copy, the last ones; how many these are."""
        span = copy.span
        size = span.hi - span.lo
        if most < size:
            if len(span.copies) == 1:
                span.hi -= most
                return most
            split(self._spans, span, span.hi - most)
            return self._evict(copy.before, most)  # type: ignore[arg-type]
        copy.unlink()
        span.copies.remove(copy)
        if not span.copies:
            del self._spans[span.key]
        return size

    def _give_back(self, chain: Chain, queue: Queue, computed: int) -> int:
        """All that a request holds; what nobody else holds goes to the end of this queue.

        Returns the blocks that cannot be found, if they are reused first: these are not in the queue.
        """
        self.settle(chain, computed)
        if chain.next is not None:
            self._stands_still(chain)
        blank, own = chain.blocks - chain.hashed, chain.hashed - chain.found
        self.free += blank + own
        self._held -= chain.blocks
        if last := own if self.unhashed_first else blank + own:
            queue.add(last)
        for copy in reversed(chain.copies):
            holders = copy.holders
            holders.remove(chain)
            if not holders:
                queue.append(copy)
                self.free += copy.span.hi - copy.span.lo
        chain.copies.clear()
        chain.blocks = chain.hashed = 0
        return blank if self.unhashed_first else 0

    def _bring_home(self, victims: int) -> None:
        """What the first of the victims had goes to the queue."""
        if not victims:
            return
        self.evict_owed()
        for blank, queue in self._lost[:victims]:
            self.blank += blank
            self._lost_blocks -= blank
            node = queue.after
            while node is not queue:
                self._lost_blocks -= node.blocks if not isinstance(node, Copy) else node.span.hi - node.span.lo
                node = node.after
            self.queue.extend(queue)
        del self._lost[:victims]
