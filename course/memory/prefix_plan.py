"""A step that is being planned on shared blocks: what those ahead bring in and push out counts for all behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from typing import Any

from course.memory.block_pool import Plan
from course.memory.prefix_spans import Chain, Copy, Node, Span

PrefixPool = Any  # course.memory.prefix_pool.PrefixPool, which stands above


class PrefixPlan(Plan):
    """See Plan. The pool is only read: what the plan takes, holds and forgets stands here."""

    __slots__ = (
        "_added", "_blank", "_decoding", "_end", "_gone", "_keep", "_looked", "_lost", "_lost_blocks", "_next", "_owed",
        "_tail",
    )  # fmt: skip

    _pool: PrefixPool
    _next: Node | None

    def __init__(self, pool: PrefixPool, due: int = 0, decoding: Container = ()):
        super().__init__(pool, due)
        self._decoding = decoding
        self._added: dict[Any, list[tuple[Chain, int]]] = {}  # by first key: who computes up to which full block
        self._blank, self._next = 0, None  # the queue from here on is still there; None: all of the pool's
        self._end: dict[Copy, int] = {}  # of copies that lose blocks: where they end then
        self._keep: dict[Copy, int] = {}  # of free copies that somebody finds: up to which block
        self._gone: set[Chain] = set()  # victims
        self._lost: list[tuple[int, list[Node]]] = []  # what they had, not in the queue yet
        self._lost_blocks = 0
        self._tail: deque[Node] = deque()  # what came behind the queue
        self._looked: dict[Any, tuple[list[tuple[Span, int, int]], int]] = {}
        self._owed = due  # blocks to be taken from the head, once it matters whose

    def hit(self, request: Any) -> int:
        """See Plan."""
        there = self._there.get(request)
        if there is None:
            there = request.computed
        return there if there > 0 else self._found(request)[1] * self._size

    @property
    def steady(self) -> bool:
        """See Plan. False too where nobody was looked at, or the next block of one who was may be in the making."""
        pool = self._pool
        if pool.steady:
            return True
        if not self._looked:
            return False
        growing = [chain for chains in pool.growing.values() for chain in chains]
        growing += [pool.chain(request) for request, there in self._there.items() if there > 0]
        for request, (_, end) in self._looked.items():
            chain = pool.chain(request)
            if end < min(chain.shared, (request.known - 1) // self._size):
                key = chain.key(end)
                if any(other.shared > end and other.key(end) == key for other in growing):
                    return False
        return True

    def remaining(self, request: Any) -> int:
        """See Plan."""
        there, known = self._there.get(request), request.known
        if there is None:
            there = request.computed
        return known - (there if there > 0 else self._found(request, known)[1] * self._size)

    def need(self, request: Any, tokens: int) -> int:
        """See Plan."""
        there, size = self._there.get(request), self._size
        if there is None:
            there = request.computed
        if there > 0:
            return -(-(there + tokens) // size) - -(-there // size)
        uses, end = self._found(request)
        return -(-(end * size + tokens) // size) - end + sum(blocks for *_, blocks in self._revived(uses))

    def take(self, request: Any, tokens: int, if_fit: int = 0) -> bool:
        """See Plan."""
        there, size = self._there.get(request), self._size
        if there is None:
            there = request.computed
        joins = there <= 0
        if joins:
            if self._lost:
                self._bring_home(len(self._lost))
            uses, end = self._found(request)
            there, held, revived = end * size, end, self._revived(uses) if uses else []
        else:
            held, revived = -(-there // size), []
        woken = sum(blocks for *_, blocks in revived) if revived else 0
        need = -(-(there + (if_fit or tokens)) // size) - held + woken
        if need > self.free:
            if if_fit:
                return False
            raise ValueError(
                f"the plan has {self.free} free blocks, and {tokens} tokens of {request!r} take {need}: ask `fits` "
                "before, or say if_fit"
            )
        self.free -= woken
        for copy, stop, _ in revived:
            self._keep[copy] = stop
        new = -(-(there + tokens) // size) - held
        while self._lost and new > self.free - self._lost_blocks:
            self._bring_home(1)
        self._owed += new
        self.free -= new
        self._there[request] = there + tokens
        chain, full = self._pool.chain(request), (there + tokens) // size
        if chain.shared and full > (end if joins else chain.hashed):
            self._added.setdefault(chain.key(0), []).append((chain, full))
        self._looked.clear()
        return True

    def lend(self, blocks: int) -> None:
        """See Plan. Taken one by one, as those that decode take theirs."""
        for _ in range(blocks):
            while self._lost and self.free - self._lost_blocks < 1:
                self._bring_home(1)
            self._owed += 1
            self.free -= 1
        self._looked.clear()

    def release(self, request: Any) -> None:
        """See Plan. What others hold too stays with them."""
        pool, there = self._pool, self._there.get(request)
        chain = pool.chain(request)
        if there is None or there > 0:
            self._pop()
            pool.settle(chain, request.computed)
            pool.keep_own(chain)
            planned = 0 if there is None else -(-there // self._size) - -(-request.computed // self._size)
            self._gone.add(chain)
            blank, nodes, free = chain.blocks - chain.hashed + planned, list[Node](), int(self.free)
            self.free += blank
            for copy in reversed(chain.copies):
                if copy.holders <= self._gone:
                    nodes.append(copy)
                    self.free += self._size_of(copy)
            if not pool.unhashed_first:
                nodes, blank = [Node(blank), *nodes], 0
            self._lost.append((blank, nodes))
            self._lost_blocks += int(self.free) - free
        self._there[request] = -1
        self._looked.clear()

    # What is there

    def _found(self, request: Any, known: int = 0) -> tuple[list[tuple[Span, int, int]], int]:
        """(span, first block, end) of what a request finds, and how many blocks it finds in all."""
        looked = self._looked.get(request)
        if looked is not None:
            return looked
        pool, place = self._pool, 0
        uses: list[tuple[Span, int, int]] = []
        chain, known = pool.chain(request), known or request.known
        if not chain.shared and not chain.rank:  # nobody has anything of it
            self._looked[request] = uses, 0
            return uses, 0
        spans, end = pool.found(chain, known)
        if self._gone or (self._owed and not all(span.copies[0].holders for span in spans)):
            self._pop()
            spans, end = pool.found(chain, known)
        for span in spans:
            stop = end if end < span.hi else span.hi
            if self._end:
                stop = min(stop, max(self._end.get(copy, span.hi) for copy in span.copies))
            uses.append((span, place, stop))
            place = stop
            if stop < span.hi:
                break
        most = (known - 1) // self._size
        if self._added and chain.shared > place and most > place:
            for other, full in self._added.get(chain.key(0), ()):
                place = max(place, chain.alike(other, 0, min(full, other.shared, chain.shared, most)))
        if place < most and self._decoding and pool.growing:
            for other in pool.growing.get(chain.key(place), ()):
                # One more token of those that decode fills a block in this step.
                if other.request in self._decoding and (other.request.computed + 1) // self._size > place:
                    place += 1
                    break
        self._looked[request] = uses, place
        return uses, place

    def _revived(self, uses: list[tuple[Span, int, int]]) -> list[tuple[Copy, int, int]]:
        """(copy, up to which block, how many free blocks) of the copies that somebody who finds this will hold."""
        found = []
        for span, place, stop in uses:
            for copy in span.copies:
                end = min(stop, self._end.get(copy, span.hi))
                if end > place:
                    if copy.holders <= self._gone:
                        kept = self._keep.get(copy, span.lo)
                        if end > kept:
                            found.append((copy, end, end - max(place, kept)))
                    place = end
        return found

    # The queue of free blocks, as the pool goes through it

    def _size_of(self, node: Node) -> int:
        """Blocks of it that are free and not taken or held yet."""
        if not isinstance(node, Copy):
            return node.blocks
        span = node.span
        return self._end.get(node, span.hi) - self._keep.get(node, span.lo)

    def _bring_home(self, victims: int) -> None:
        if victims:
            self._pop()
        for blank, nodes in self._lost[:victims]:
            self._blank += blank
            self._tail.extend(nodes)
            self._lost_blocks -= blank + sum(map(self._size_of, nodes))
        del self._lost[:victims]

    def _pop(self) -> None:
        """What is owed is taken from the head: what was in it cannot be found any more."""
        queue, blocks, self._owed = self._pool.queue, self._owed, 0
        if self._next is None:
            self._pool.evict_owed()
            self._looked.clear()
            self._blank, self._next = self._pool.blank, queue.after
        while blocks > 0:
            if self._blank:
                taken = min(blocks, self._blank)
                self._blank -= taken
                blocks -= taken
                continue
            node = self._next
            if node is queue:
                if not self._tail:
                    return
                node = self._tail[0]
            size = self._size_of(node)
            if not isinstance(node, Copy):
                self._blank += size
            else:
                taken = min(blocks, size)
                self._end[node] = self._end.get(node, node.span.hi) - taken
                blocks -= taken
            if not isinstance(node, Copy) or taken == size:
                if node is self._next:
                    self._next = node.after
                else:
                    self._tail.popleft()
