"""The KV blocks of one engine while it serves. Nobody else counts them."""

from __future__ import annotations

import math
from typing import Protocol


class Holder(Protocol):
    """Whoever holds blocks: a request, which knows how many of its tokens are in the cache."""

    @property
    def computed(self) -> int:
        """Tokens whose K and V are in the cache."""


def blocks_for(tokens: int, block_size: int) -> int:
    """Blocks that hold this many tokens: tokens / block_size, rounded up."""
    return -(-tokens // block_size)


class BlockPool:
    """Blocks by count, and by number for whoever asks for a block table.

    A request takes blocks for the tokens that it is about to compute (`take`) and gives all of them back at once
    (`release`). One that decodes does not ask step by step: it computes a token in each step, so from `decode` to
    `pause` it needs a new block once in `block_size` steps, always at the same phase. A count of decodes by phase says
    what any step needs (`due`), how long the free blocks last (`steps_left`), and what a stretch of steps takes
    (`advance`).

    free: blocks that nobody holds, infinite without a limit. It is negative where more was taken than there is: whoever
    takes looks at it before the step runs.
    """

    __slots__ = (
        "_decodes", "_numbers", "_reserved", "_returned", "_tables", "block_size", "free", "num_blocks", "phases",
        "step",
    )  # fmt: skip

    def __init__(self, num_blocks: float = math.inf, block_size: int = 1):
        self.num_blocks, self.block_size, self.free = num_blocks, block_size, num_blocks
        self.step = self._decodes = 0  # the number of the coming step
        self.phases = [0] * block_size  # decodes that need a block when step % block_size is this
        self._reserved: dict[Holder, int] = {}
        self._tables: dict[Holder, list[int]] = {}
        self._numbers = 0  # block numbers given out so far, and those that came back
        self._returned: list[int] = []

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-tokens // self.block_size)

    def hit(self, request: Holder) -> int:
        """Tokens of the request's prompt that are in the cache before it is admitted: none, without shared prefixes."""
        return 0

    def held(self, request: Holder) -> int:
        """Blocks that the request holds."""
        if self._reserved and request in self._reserved:
            return self._reserved[request]
        return -(-request.computed // self.block_size)

    def take(self, request: Holder, tokens: int, computed: int | None = None) -> None:
        """Blocks for `tokens` more tokens of a request that does not decode, before it computes them.

        computed: what is in the cache of it, by default what it says.
        """
        if computed is None:
            computed = request.computed
        self.free -= -(-(computed + tokens) // self.block_size) - -(-computed // self.block_size)

    def reserve(self, request: Holder, tokens: int) -> None:
        """Blocks for a whole life of `tokens` tokens, taken at once and held until `release`."""
        self._reserved[request] = blocks = -(-tokens // self.block_size)
        self.free -= blocks

    def release(self, request: Holder, computed: int | None = None) -> None:
        """All blocks of the request come home: those of `computed` tokens, by default of as many as it says."""
        if self._reserved and request in self._reserved:
            self.free += self._reserved.pop(request)
        else:
            self.free += -(-(request.computed if computed is None else computed) // self.block_size)
        if self._tables:
            self._forget_table(request)

    # Those that decode

    @property
    def due(self) -> int:
        """Blocks that the decodes take in the coming step."""
        return self.phases[self.step % self.block_size]

    def decode(self, computed: int) -> None:
        """From the coming step on a request with so many tokens in the cache computes one more in each."""
        self._decodes += 1
        self.phases[(self.step - computed) % self.block_size] += 1

    def pause(self, computed: int) -> None:
        """From the coming step on one of those that decode does not; so many of its tokens are in the cache now."""
        self._decodes -= 1
        self.phases[(self.step - computed) % self.block_size] -= 1

    def leave(self, request: Holder, computed: int) -> None:
        """`pause` and `release` in one, for a request whose answer is complete."""
        size = self.block_size
        self._decodes -= 1
        self.phases[(self.step - computed) % size] -= 1
        self.free += -(-computed // size)
        if self._tables:
            self._forget_table(request)

    def _forget_table(self, request: Holder) -> None:
        self._returned.extend(reversed(self._tables.pop(request, [])))

    def steps_left(self, limit: int) -> int:
        """How many of the next `limit` steps of decodes alone the free blocks last for."""
        size, free = self.block_size, self.free
        if self._decodes * (limit // size + 1) <= free:
            return limit
        for taken in range(limit):
            free -= self.phases[(self.step + taken) % size]
            if free < 0:
                return taken
        return limit

    def advance(self, steps: int) -> None:
        """So many steps have run: every request that decodes has taken what it needed."""
        if steps == 1:
            self.free -= self.phases[self.step % self.block_size]
        elif self._decodes and self.free != math.inf:
            size = self.block_size
            rounds, rest = divmod(steps, size)
            at = self.step % size
            self.free -= self._decodes * rounds + sum(self.phases[at : at + rest])
            if at + rest > size:
                self.free -= sum(self.phases[: at + rest - size])
        self.step += steps

    # By number

    def table(self, request: Holder, tokens: int = 0) -> list[int]:
        """The numbers of the request's blocks in the order of its tokens, for `tokens` more than it has computed.

        Numbers are given out when they are first asked for, so that nobody pays for those that nobody reads. From 0 to
        num_blocks - 1, and no two requests have one in common.
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

    free: blocks left, below 0 where the plan takes more than there are.
    """

    __slots__ = ("_held", "_pool", "_size", "free")

    def __init__(self, pool: BlockPool, decodes: bool = True):
        self._pool, self._size, self.free = pool, pool.block_size, pool.free
        if decodes:  # what all of them need in the coming step is taken already
            self.free -= pool.phases[pool.step % self._size]
        self._held: dict[Holder, int] = {}  # tokens of those that the plan has touched

    def need(self, request: Holder, tokens: int) -> int:
        """Blocks that `tokens` more tokens of the request take."""
        held, size = self._held.get(request), self._size
        if held is None:
            held = request.computed
        return -(-(held + tokens) // size) - -(-held // size)

    def fits(self, request: Holder, tokens: int) -> bool:
        """Whether the free blocks suffice for `tokens` more tokens of the request."""
        return self.need(request, tokens) <= self.free

    def take(self, request: Holder, tokens: int, if_fit: int = 0) -> bool:
        """The request computes `tokens` more tokens. if_fit: only where so many would fit; False where they do not."""
        held, size = self._held.get(request), self._size
        if held is None:
            held = request.computed
        have = -(-held // size)
        if if_fit and -(-(held + if_fit) // size) - have > self.free:
            return False
        self._held[request] = held = held + tokens
        self.free -= -(-held // size) - have
        return True

    def release(self, request: Holder) -> None:
        """The request is preempted: its blocks are free."""
        held = self._held.get(request)
        self.free += self._pool.held(request) if held is None else -(-held // self._size)
        self._held[request] = 0
