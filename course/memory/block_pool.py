"""The KV blocks of one engine while it serves. No other code counts them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Container, Iterable, Iterator
from typing import Any, Protocol, TypeVar

Count = TypeVar("Count", int, Any)  # one number, or an array of them


class Holder(Protocol):
    """A request, as a pool looks at it."""

    @property
    def computed(self) -> int:
        """Tokens whose K and V are in the cache; 0 while it waits."""


def blocks_for(tokens: Count, block_size: int) -> Count:
    """Blocks that hold this many tokens: tokens / block_size, rounded up."""
    return -(-tokens // block_size)


class BlockPool:
    """Blocks by count, and by number for an executor that asks for a block table.

    `hit` looks what is there of a request that waits, `admit` holds it, `take` adds blocks for the tokens that are
    about to be computed, `release` gives everything back when the answer is complete, and `preempt` when the request
    loses its slot before. In a plain pool nothing is there but what comes from elsewhere (`bring`). A
    pool of another kind overrides these verbs, and `plan` if its blocks are shared (`PrefixPool`).

    free: blocks that no request holds, infinite without a limit. It is negative if more was taken than there is: the
    engine looks at it before the step runs. column: blocks held in each step, if a count of them is kept. shared,
    lookups: see PrefixPool; None of a pool in which nothing is shared. debt: see ContiguousPool; None of
    others. steady: while all that run go on decoding, nobody who waits comes to need fewer blocks. grows: whether those
    that decode need more blocks as they go on.
    coming: tokens by request of what comes from elsewhere with those that have had no slot yet.
    """

    __slots__ = (
        "_numbers",
        "_reserved",
        "_returned",
        "_tables",
        "block_size",
        "column",
        "coming",
        "free",
        "num_blocks",
    )

    shared: array | None = None
    lookups: array | None = None
    debt: array | None = None
    steady: bool = True
    grows: bool = True

    def __init__(self, num_blocks: float = math.inf, block_size: int = 1):
        self.num_blocks, self.block_size, self.free = num_blocks, block_size, num_blocks
        self.column: array | None = None
        self._reserved: dict[Holder, int] = {}
        self._tables: dict[Holder, list[int]] = {}
        self.coming: dict[Holder, int] = {}
        self._numbers = 0  # block numbers given out so far, and those that came back
        self._returned: list[int] = []

    @property
    def evicted(self) -> int | None:
        """See PrefixPool; None of others."""
        return None

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-tokens // self.block_size)

    # Of one request

    def hit(self, request: Holder) -> int:
        """Tokens of a request that waits which are in the cache already, fewer than all. Changes nothing."""
        return self.coming.get(request, 0) if self.coming else 0

    def admit(self, request: Holder) -> int:
        """The request gets a slot, and holds what is there of it. Returns its tokens."""
        tokens = self.hit(request)
        self.free -= -(-tokens // self.block_size)
        self.coming.pop(request, None)
        return tokens

    def bring(self, request: Holder, tokens: int) -> None:
        """K and V of so many tokens of a request that waits come from elsewhere when it gets its slot."""
        self.coming[request] = tokens

    def held(self, request: Holder) -> int:
        """Blocks that the request holds."""
        if self._reserved and request in self._reserved:
            return self._reserved[request]
        return -(-request.computed // self.block_size)

    def need(self, request: Holder, tokens: int) -> int:
        """Free blocks that it takes to compute `tokens` more tokens of the request, its admission included."""
        if self._reserved and request in self._reserved:
            return 0
        there = request.computed
        return -(-((there or self.hit(request)) + tokens) // self.block_size) - -(-there // self.block_size)

    def take(self, request: Holder, tokens: int, computed: int | None = None) -> None:
        """Blocks for `tokens` more tokens of a request with a slot, before it computes them.

        computed: what is in the cache of it, by default what it says.
        """
        if computed is None:
            computed = request.computed
        if not self._reserved or request not in self._reserved:
            self.free -= -(-(computed + tokens) // self.block_size) - -(-computed // self.block_size)

    def spend(self, blocks: int, decoding: Container = ()) -> None:
        """So many blocks go to those that decode, in one step or several; which to whom is left to `table`.

        decoding: who decodes in this step, if others join in it.
        """
        self.free -= blocks

    def reserve(self, request: Holder, tokens: int) -> None:
        """Blocks for a whole life of `tokens` tokens, taken at once and held until `release`."""
        self._reserved[request] = blocks = -(-tokens // self.block_size)
        self.free -= blocks

    def release(self, request: Holder, computed: int | None = None) -> None:
        """All blocks of the request come home. computed: its tokens in the cache, by default as many as it says."""
        if self._reserved and request in self._reserved:
            self.free += self._reserved.pop(request)
        else:
            self.free += -(-(request.computed if computed is None else computed) // self.block_size)
        if self._tables:
            self._returned.extend(reversed(self._tables.pop(request, [])))

    def release_all(self, gone: Iterable[tuple[Holder, int]]) -> None:
        """`release` for all of (request, its tokens in the cache), which leave with the same step."""
        for request, computed in gone:
            self.release(request, computed)

    def preempt(self, request: Holder) -> int:
        """The request loses its slot. Returns how many of its tokens must be computed again."""
        tokens = request.computed
        self.release(request)
        return tokens

    def forget(self, request: Holder) -> int:
        """A request that holds no blocks leaves the queue. Returns how many of its tokens were kept for it."""
        return 0

    def copying(self) -> float:
        """Seconds that blocks were copied for since the last step: the coming one takes so much longer."""
        return 0.0

    def accept(self, request: Holder, tokens: int) -> None:
        """Of what was computed besides in the step that has ended so many tokens stay, behind those of the step."""
        self.take(request, tokens)

    def cut(self, request: Holder) -> None:
        """Of its block table remains what holds its tokens: drafts that were rejected need none."""
        table = self._tables.get(request)
        while table and len(table) > -(-request.computed // self.block_size):
            self._returned.append(table.pop())

    # Of a step

    def lend(self, blocks: int) -> None:
        """So many hold the drafts of a step, whoever they are of: the last to be taken, and back when it has ended."""
        self.free -= blocks

    def take_back(self, blocks: int) -> None:
        """What was lent is free."""
        self.free += blocks

    def plan(self, due: int = 0, decoding: Container = ()) -> Plan:
        """A scratch copy for a step that is being planned. due: blocks that are taken already, by those `decoding`."""
        return Plan(self, due)

    def note(self) -> None:
        """A step begins with what is held now."""
        if self.column is not None:
            self.column.append(0 if self.free == math.inf else int(self.num_blocks - self.free))

    def decode(self, blocks: Iterator[int]) -> None:
        """Steps of decodes alone, at least one, that take so many blocks each."""
        for taken in blocks:
            self.spend(taken)
            self.note()

    # By number

    def table(self, request: Holder, tokens: int = 0) -> list[int]:
        """The numbers of the request's blocks in the order of its tokens, for `tokens` more than it has computed.

        Numbers are given out when they are first asked for, so that a run without tables does not pay for them. From 0
        to num_blocks - 1, and no two requests have one in common.
        """
        table = self._tables.setdefault(request, [])
        for _ in range(-(-(request.computed + tokens) // self.block_size) - len(table)):
            if self._returned:
                table.append(self._returned.pop())
            else:
                table.append(self._numbers)
                self._numbers += 1
        return table


class Plan:
    """What a pool would have left after a step that is being planned. Nothing here changes the pool.

    free: blocks left. Below 0 only from the beginning, if the decodes alone need more than there are.
    """

    __slots__ = ("_plain", "_pool", "_size", "_there", "free")

    def __init__(self, pool: BlockPool, due: int = 0):
        self._pool, self._size, self.free = pool, pool.block_size, pool.free - due
        self._plain = type(pool) is BlockPool and not pool.coming  # then `hit` is 0
        self._there: dict[Holder, int] = {}  # tokens of those that the plan has brought in; -1 for those pushed out

    def hit(self, request: Holder) -> int:
        """Tokens in the cache of a request when it computes its next ones, as far as the step is planned."""
        there = self._there.get(request)
        if there is None:
            there = request.computed
        return there if there > 0 else self._pool.hit(request)

    @property
    def steady(self) -> bool:
        """Whether who finds no room will not while nobody leaves: see BlockPool."""
        return self._pool.steady

    def remaining(self, request: Any) -> int:
        """Tokens that a request still has to compute, as far as the step is planned: see `Request.remaining`."""
        return request.remaining if self._plain else request.known - self.hit(request)

    def need(self, request: Holder, tokens: int) -> int:
        """Free blocks that `tokens` more tokens of the request take."""
        there, size = self._there.get(request), self._size
        if there is None:
            return self._pool.need(request, tokens)
        if there < 0:
            return -(-(self._pool.hit(request) + tokens) // size)
        return -(-(there + tokens) // size) - -(-there // size)

    def fits(self, request: Holder, tokens: int) -> bool:
        """Whether the free blocks suffice for `tokens` more tokens of the request."""
        return self.need(request, tokens) <= self.free

    def take(self, request: Holder, tokens: int, if_fit: int = 0) -> bool:
        """The request computes `tokens` more tokens. if_fit: only if so many would fit; returns False if not.

        Raises ValueError for tokens that do not fit, without `if_fit`.
        """
        there, size = self._there.get(request), self._size
        if there is None:
            there = request.computed
        if there > 0:
            held = -(-there // size)
        else:
            there, held = 0 if self._plain else self._pool.hit(request), 0
        need = -(-(there + (if_fit or tokens)) // size) - held
        if need > self.free:
            if if_fit:
                return False
            raise ValueError(
                f"the plan has {self.free} free blocks, and {tokens} tokens of {request!r} take {need}: ask `fits` "
                "before, or say if_fit"
            )
        self.free -= need if if_fit in (0, tokens) else -(-(there + tokens) // size) - held
        self._there[request] = there + tokens
        return True

    def lend(self, blocks: int) -> None:
        """So many go to drafts; `free` is below 0 if there are fewer."""
        self.free -= blocks

    def release(self, request: Holder) -> None:
        """The request is preempted: its blocks are free."""
        there = self._there.get(request)
        if there is None:
            self.free += self._pool.held(request)
        elif there > 0:
            self.free += -(-there // self._size)
        self._there[request] = -1
