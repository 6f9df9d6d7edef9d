"""KV memory without paging: each request gets one piece of it, reserved at admission and kept until it leaves.

This is how engines did it before PagedAttention (Kwon et al., SOSP 2023, section 3). Three reservations, as that paper
calls them: for the longest request that there may be (Orca Max), for its answer rounded up to a power of two (Orca
Pow2), and for its true length (Orca Oracle). What an answer will be is `Request.guess`; no engine knows it.
"""

from __future__ import annotations

import math
from array import array
from bisect import insort
from typing import Any

from course.memory.block_pool import BlockPool, Plan, blocks_for

RESERVES, FITS = ("longest", "power of two", "length"), ("best", "first")


def piece(reserve: str, max_model_len: int, prompt: int, answer: float | None) -> int:
    """Tokens that are reserved for a request.

    answer: tokens as they are guessed. Nothing is longer than max_model_len.
    """
    if reserve == "longest" or answer is None:
        return max_model_len
    tokens = math.ceil(answer)
    return min(max_model_len, prompt + (1 << (tokens - 1).bit_length() if reserve == "power of two" else tokens))


class Space:
    """Addresses from 0 to `size`, in holes and what lies between them. holes: [start, length], sorted."""

    __slots__ = ("fit", "holes")

    def __init__(self, holes: list[tuple[int, int]], fit: str = "best"):
        self.holes, self.fit = holes, fit

    def take(self, length: int) -> int | None:
        """Where a piece goes: into the smallest hole that holds it (fit "best"), or the first. None if none does."""
        by = int(self.fit == "best")  # of equals the first
        hole = min((hole for hole in self.holes if hole[1] >= length), key=lambda hole: hole[by], default=None)
        if hole is None:
            return None
        self.holes.remove(hole)
        if hole[1] > length:
            insort(self.holes, (hole[0] + length, hole[1] - length))
        return hole[0]

    def give(self, start: int, length: int) -> None:
        """A piece becomes a hole, one with those beside it."""
        for hole in [hole for hole in self.holes if hole[0] + hole[1] == start or start + length == hole[0]]:
            self.holes.remove(hole)
            start, length = min(start, hole[0]), length + hole[1]
        insort(self.holes, (start, length))

    @property
    def largest(self) -> int:
        """Blocks of the largest hole."""
        return max((length for _, length in self.holes), default=0)


class ContiguousPool(BlockPool):
    """A piece of contiguous blocks for each request. Those that decode need no more.

    reserve: one of RESERVES. fit: of FITS, see Space. compaction: seconds to move one block where the pieces are pushed
    together, None if they stay where they are: then a piece needs one hole that holds it, however much is free in all.
    debt: free blocks outside the largest hole in each step, which compaction would bring together.
    """

    __slots__ = ("_moved", "_space", "_starts", "compaction", "debt", "fit", "max_model_len", "reserved_as")

    grows = False
    debt: array

    def __init__(
        self, num_blocks: int, block_size: int, reserve: str, max_model_len: int, compaction: float | None = None,
        fit: str = "best",
    ):  # fmt: skip
        super().__init__(num_blocks, block_size)
        self.reserved_as, self.max_model_len, self.compaction, self.fit = reserve, max_model_len, compaction, fit
        self._space, self._starts = Space([(0, num_blocks)], fit), dict[Any, int]()
        self._moved = 0  # blocks, since the last step
        self.debt = array("q")

    def piece(self, request: Any) -> int:
        """Blocks that are reserved for the request."""
        return blocks_for(
            piece(self.reserved_as, self.max_model_len, request.prompt_tokens, request.guess), self.block_size
        )

    def need(self, request: Any, tokens: int) -> int:
        """See BlockPool: all or nothing."""
        return 0 if request in self._reserved else self.piece(request)

    def admit(self, request: Any) -> int:
        """See BlockPool. Raises ValueError if no hole holds its piece."""
        blocks = self.piece(request)
        start = self._space.take(blocks)
        if start is None and self.compaction is not None and blocks <= self.free:
            self._compact()
            start = self._space.take(blocks)
        if start is None:
            raise ValueError(
                f"{request!r} needs {blocks} blocks in one piece, and the largest hole has {self._space.largest}, "
                f"though {self.free} blocks are free: ask the plan whether it fits"
            )
        self._starts[request], self._reserved[request] = start, blocks
        self.free -= blocks
        return 0

    def _compact(self) -> None:
        """All pieces one behind the other, in the order in which they lie."""
        place = 0
        for request in sorted(self._starts, key=lambda one: self._starts[one]):
            if self._starts[request] != place:
                self._moved += self._reserved[request]
                self._starts[request] = place
            place += self._reserved[request]
        self._space = Space([(place, int(self.num_blocks) - place)], self.fit)

    def release(self, request: Any, computed: int | None = None) -> None:
        """See BlockPool."""
        self._space.give(self._starts.pop(request), self._reserved[request])
        super().release(request, computed)

    def note(self) -> None:
        """See BlockPool."""
        super().note()
        self.debt.append(int(self.free) - self._space.largest)

    def copying(self) -> float:
        """See BlockPool: what compaction took."""
        blocks, self._moved = self._moved, 0
        return blocks * self.compaction if self.compaction and blocks else 0.0

    def plan(self, due: int = 0, decoding: Any = ()) -> ContiguousPlan:
        """See BlockPool."""
        return ContiguousPlan(self, due)

    def planned_space(self) -> Space | None:
        """A copy of the holes for a plan; None where all that is free can be pushed together."""
        return Space(self._space.holes.copy(), self.fit) if self.compaction is None else None

    def place(self, request: Any) -> tuple[int, int] | None:
        """(first block, blocks) of a request with a slot."""
        return (self._starts[request], self._reserved[request]) if request in self._starts else None


class ContiguousPlan(Plan):
    """See Plan. A request that joins needs one hole for its whole piece."""

    __slots__ = ("_placed", "_space")

    _pool: ContiguousPool

    def __init__(self, pool: ContiguousPool, due: int = 0):
        super().__init__(pool, due)
        self._space, self._placed = pool.planned_space(), dict[Any, tuple[int, int] | None]()

    def _place(self, request: Any) -> tuple[int, int] | None:
        return self._placed[request] if request in self._placed else self._pool.place(request)

    def need(self, request: Any, tokens: int) -> int:
        """See Plan. One block more than there are if no hole holds the piece."""
        if self._place(request):
            return 0
        blocks = self._pool.piece(request)
        return blocks if self._space is None or self._space.largest >= blocks else max(blocks, int(self.free) + 1)

    def take(self, request: Any, tokens: int, if_fit: int = 0) -> bool:
        """See Plan."""
        there = max(0, self._there.get(request, request.computed))
        if not self._place(request):
            need, blocks = self.need(request, tokens), self._pool.piece(request)
            if need > self.free:
                if if_fit:
                    return False
                raise ValueError(
                    f"the plan has no room for the {blocks} blocks of {request!r} in one piece: ask `fits` before, or "
                    "say if_fit"
                )
            start = self._space.take(blocks) if self._space else 0
            self._placed[request] = (start or 0, blocks)
            self.free -= blocks
        self._there[request] = there + tokens
        return True

    def release(self, request: Any) -> None:
        """See Plan."""
        if place := self._place(request):
            self.free += place[1]
            if self._space is not None:
                self._space.give(*place)
        self._placed[request] = None
        self._there[request] = -1
