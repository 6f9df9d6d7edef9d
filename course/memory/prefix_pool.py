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
from collections.abc import Container, Iterable, Iterator
from itertools import accumulate, repeat
from typing import Any

from course.memory.prefix_index import Findable
from course.memory.prefix_plan import PrefixPlan
from course.memory.prefix_spans import Chain, Queue, Span, split


class PrefixPool(Findable):
    """Blocks that are shared by those who begin alike.

    unhashed_first: whether freed blocks that cannot be found are reused before all others. shared: blocks that requests
    would hold besides in each step if each had its own. lookups: (row, tokens known, tokens found) of each admission.
    Not thought of: executors that ask for block tables.
    """

    __slots__ = ("_admissions", "_held", "lookups", "shared", "unhashed_first")

    # As in BlockPool, but never missing.
    column: array
    shared: array
    lookups: array

    def __init__(self, num_blocks: int, block_size: int, unhashed_first: bool = False):
        super().__init__(num_blocks, block_size)
        self.unhashed_first = unhashed_first
        self._held = self._admissions = 0
        self.shared, self.lookups = array("q"), array("q")

    # Of one request

    def hit(self, request: Any) -> int:
        """See BlockPool. 0 for a request with a slot."""
        chain = self.chain(request)
        return 0 if chain.blocks else self.found(chain, request.known)[1] * self.block_size

    def admit(self, request: Any) -> int:
        """See BlockPool."""
        if self._lost:
            self.bring_home(len(self._lost))
        chain = self.chain(request)
        spans, end = self.found(chain, request.known)
        self.hold(chain, request.known, spans, end)
        return end * self.block_size

    def hold(self, chain: Chain, known: int, spans: list[Span], end: int) -> None:
        """A request that knows so many tokens gets a slot, and holds what was found of it, `end` blocks in all."""
        if spans:
            last = spans[-1]
            if end < last.hi:
                split(self._spans, last, end)
            last.forked = True
            for span in spans:
                copy = span.copies[0]
                if not copy.holders:
                    copy.unlink()
                    self.free -= span.hi - span.lo
                copy.holders.add(chain)
                chain.copies.append(copy)
        self._admissions += 1
        chain.hashed = chain.blocks = end
        chain.rank = self._admissions
        self._held += end
        self.lookups.extend((chain.request.index, known, end * self.block_size))

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
        chain = self._chains.get(request) or self.chain(request)
        if computed > chain.hashed * self.block_size:
            self.settle(chain, computed)
        self.grow(chain, computed + tokens, step)

    def grow(self, chain: Chain, tokens: int, step: float) -> None:
        """Blocks for so many tokens of it in all. step: see `_take`."""
        size = self.block_size
        blocks, full = -(-tokens // size), tokens // size
        if blocks > chain.blocks:
            more, chain.blocks = blocks - chain.blocks, blocks
            self._held += more
            self.take_blocks(more)
        if full > chain.hashed:
            self.register(chain, full, step, 0)
        elif chain.next is None and chain.hashed < chain.shared:
            self.grows_on(chain)

    def spend(self, blocks: int, decoding: Container = ()) -> None:
        """See BlockPool."""
        self._decoding = decoding
        if self._lost:
            self.lend(blocks)
        else:
            self.free -= blocks
            self._owed += blocks
            self._held += blocks

    def lend(self, blocks: int) -> None:
        """See BlockPool."""
        self._held += blocks
        while self._lost and blocks > self.free - self._lost_blocks:  # one after the other, each takes one
            ready = max(self.free - self._lost_blocks, 0)
            self.take_blocks(ready)
            blocks -= ready
            self.bring_home(1)
        self.take_blocks(blocks)

    def take_back(self, blocks: int) -> None:
        """See BlockPool."""
        self.free += blocks
        self._held -= blocks
        self.evict_owed()
        self.blank += blocks

    def reserve(self, request: Any, tokens: int) -> None:
        """See BlockPool. A padded batch finds nothing, and nothing of it can be found."""
        self._reserved[request] = blocks = self.blocks_for(tokens)
        self.take_blocks(blocks)
        self._held += blocks

    def forget(self, request: Any) -> int:
        """See BlockPool."""
        self._chains.pop(request, None)
        return 0

    def release(self, request: Any, computed: int | None = None) -> None:
        """See BlockPool. What others hold too stays with them."""
        if self._reserved and request in self._reserved:
            self.take_back(self._reserved.pop(request))
            return
        chain = self._chains.pop(request)
        if blank := self._give_back(chain, self.queue, request.computed if computed is None else computed):
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
                self.settle_all()
                break
        return PrefixPlan(self, due, decoding)

    @property
    def evicted(self) -> int:
        """Blocks taken so far that others could have found, by the hashes of the requests that had filled them."""
        self.evict_owed()
        return self.forgotten

    def note(self) -> None:
        """See BlockPool."""
        used = self.num_blocks - self.free
        self.column.append(used)
        self.shared.append(self._held - used)
        if self._lost:
            self.bring_home(len(self._lost))
        self._step += 1
        self._decoding = ()

    def decode(self, blocks: Iterator[int]) -> None:
        """See BlockPool."""
        self.spend(next(blocks))
        if self._lost:
            self.bring_home(len(self._lost))
        used, begun, column = self.num_blocks - self.free, self._step, self.column
        column.extend(accumulate(blocks, initial=used))
        self._step = len(column)
        self.shared.extend(repeat(self._held - used, self._step - begun))
        more = column[-1] - used
        self.free -= more
        self._owed += more
        self._held += more
        self._decoding = ()

    def table(self, request: Any, tokens: int = 0) -> list[int]:
        """Raises ValueError: which block has which number is not kept."""
        raise ValueError("a prefix cache does not keep which block has which number: serve with prefix_caching=False")

    def _give_back(self, chain: Chain, queue: Queue, computed: int) -> int:
        """All that a request holds; what nobody else holds goes to the end of this queue.

        Returns the blocks that cannot be found, if they are reused first: these are not in the queue.
        """
        self.settle(chain, computed)
        if chain.next is not None:
            self.stands_still(chain)
        blank, own = chain.blocks - chain.hashed, chain.hashed - chain.found
        self.free += blank + own
        self._held -= chain.blocks
        if last := own if self.unhashed_first else blank + own:
            queue.add(last)
        for copy in reversed(chain.copies):
            holders = copy.holders
            holders.remove(chain)
            if not holders:
                copy.link(queue)
                self.free += copy.span.hi - copy.span.lo
        chain.copies.clear()
        chain.blocks = chain.hashed = 0
        return blank if self.unhashed_first else 0
