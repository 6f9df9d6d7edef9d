"""What a prefix cache is made of: the chain of a request's blocks, spans of blocks that are there, and copies of them.

A block is known by the hash of all tokens up to its end. Blocks that are used alike stand together in one span, so that
a shared prompt of a thousand blocks costs no more than one of ten; a hit or an eviction that ends inside cuts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Key = Any
"""What two blocks have in common if and only if all tokens up to their end are the same."""


class Chain:
    """The blocks of one request by their keys, and what it holds of them.

    ids: hashes of its prefix. parts: blocks that each of these stands for. shared: leading blocks that have such a
    hash; a block behind them is like no other request's.
    blocks: how many it holds. hashed: how many of these can be found, the leading ones. copies: those, in spans, by
    place. rank: the how many-th to get a slot, of all who did; 0 before. next: the key of the block that it fills next,
    if others may know that; None if not, and without a slot.
    """

    __slots__ = ("blocks", "copies", "hashed", "ids", "next", "parts", "rank", "request", "shared")

    def __init__(self, request: Any, ids: Sequence, parts: int, shared: int):
        self.request, self.ids, self.parts, self.shared = request, ids, parts, shared
        self.blocks = self.hashed = self.rank = 0
        self.copies: list[Copy] = []
        self.next: Key = None

    @property
    def found(self) -> int:
        """Its leading blocks that stand in `copies`."""
        return self.copies[-1].span.hi if self.copies else 0

    def key(self, place: int) -> Key:
        """The key of its block number `place`."""
        if place >= self.shared:
            return self, place
        return self.ids[place] if self.parts == 1 else (self.ids[place // self.parts], place % self.parts)

    def same(self, span: Span, end: int) -> int:
        """Where `span`, whose first block is also here, ceases to be like this chain; `end` at most."""
        if span.hi < end:
            end = span.hi
        shared, start = self.shared, span.lo
        if start >= shared:
            return end
        return self.alike(span.chain, start, end if end < shared else shared)

    def alike(self, other: Chain, start: int, end: int) -> int:
        """Up to which block the hashes of both are equal from block `start` on; `end` at most, in both shared."""
        mine, theirs, parts = self.ids, other.ids, self.parts
        if mine is theirs:
            return end
        first, last = (start, end) if parts == 1 else (start // parts, -(-end // parts))
        if mine[first:last] == theirs[first:last]:
            return end
        equal = first  # by halves: all before `equal` are, those before `last` are not
        while last - equal > 1:
            middle = (equal + last) // 2
            if mine[equal:middle] == theirs[equal:middle]:
                equal = middle
            else:
                last = middle
        return max(start, equal * parts)


class Span:
    """Blocks `lo` to `hi` of a chain, each of which has the same copies. copies: the first registered stands first.

    forked: whether somebody else has held its end, and may have gone on in another way.
    """

    __slots__ = ("chain", "copies", "forked", "hi", "key", "lo")

    def __init__(self, lo: int, hi: int, chain: Chain):
        self.lo, self.hi, self.chain, self.key = lo, hi, chain, chain.key(lo)
        self.copies: list[Copy] = []
        self.forked = False

    def goes_on(self, since: float, stride: int, rank: int) -> bool:
        """Whether its holder's next block is like those in it, and nobody else goes on from its end."""
        if self.forked:
            return False
        copy = self.copies[0]
        on_time = stride == copy.stride and since == copy.since + stride * (self.hi - self.lo)
        return on_time and copy.rank == rank


class Node:
    """A place in the queue of free blocks. blocks: of those without a hash, 0 of a copy."""

    __slots__ = ("after", "before", "blocks")

    before: Node
    after: Node

    def __init__(self, blocks: int = 0):
        self.blocks = blocks

    def unlink(self) -> None:
        """Out of the queue."""
        self.before.after, self.after.before = self.after, self.before

    def link(self, before: Node) -> None:
        """Into the queue, in front of this one."""
        self.before, self.after = before.before, before
        before.before.after = before.before = self


class Copy(Node):
    """Blocks that hold what a span says. holders: whose they are; free, and in the queue, where there is none.

    since: the step in which its first block got its hash, and `stride` steps later the next one; with the holder's
    rank this decides which of several copies was there first.
    """

    __slots__ = ("holders", "rank", "since", "span", "stride")

    def __init__(self, span: Span, holders: set[Chain], since: float, stride: int, rank: int):
        self.blocks = 0
        self.span, self.holders, self.since, self.stride, self.rank = span, holders, since, stride, rank

    def age(self) -> tuple[float, int]:
        """What the copies of a span are sorted by."""
        return self.since, self.rank


class Queue(Node):
    """Free blocks, from the one that is reused first to the last; each copy from its last block to its first."""

    __slots__ = ()

    def __init__(self) -> None:
        self.blocks, self.before, self.after = 0, self, self

    def add(self, blocks: int) -> None:
        """So many blocks that cannot be found, the last to be reused."""
        last = self.before
        if type(last) is Node:
            last.blocks += blocks
        else:
            Node(blocks).link(self)

    def extend(self, other: Queue) -> None:
        """All of another behind all of this; the other one is empty then."""
        if other.after is not other:
            last = self.before
            last.after, other.after.before = other.after, last
            self.before, other.before.after = other.before, self
            other.before = other.after = other


def split(spans: dict[Key, Span], span: Span, middle: int) -> None:
    """Cut a span in two, at block `middle`: it keeps those before."""
    back = Span(middle, span.hi, span.chain)
    spans[back.key], span.hi, back.forked = back, middle, span.forked
    for copy in span.copies:
        since = copy.since + copy.stride * (middle - span.lo)
        twin = Copy(back, copy.holders.copy(), since, copy.stride, copy.rank)
        for chain in copy.holders:
            chain.copies.insert(chain.copies.index(copy) + 1, twin)
        if not copy.holders:
            twin.link(copy)  # the last blocks of a chain are reused first
        back.copies.append(twin)
    if len(back.copies) > 1:
        back.copies.sort(key=Copy.age)
