"""KV blocks of preempted requests, copied to the host and back instead of computed again.

vLLM V0 called it swapping; V1 always computes again. Copies are charged to the step that they come before, in full:
nothing is copied while the step computes.
"""

from __future__ import annotations

from typing import Any

from course.base import settings
from course.memory.block_pool import BlockPool


def copy_seconds(num_bytes: float, bytes_per_second: float) -> float:
    """Seconds to copy so many bytes one way. Raises ValueError for a bandwidth of 0."""
    bandwidth = settings.real("the bandwidth of a copy", bytes_per_second, low=0)
    if not bandwidth:
        raise ValueError("a copy at 0 bytes/s never ends: give a bandwidth, or leave offloading out (host_blocks=0)")
    return settings.real("bytes of a copy", num_bytes, low=0) / bandwidth


class SwapPool(BlockPool):
    """Whoever is preempted comes back with what it had, if the host had room for it.

    host_blocks: room on the host. host_seconds: of copying one block one way. A request that finds the host full is
    computed again, as in a BlockPool.
    """

    __slots__ = ("_kept", "_moved", "host_free", "host_seconds")

    def __init__(self, num_blocks: int, block_size: int, host_blocks: int, host_seconds: float):
        super().__init__(num_blocks, block_size)
        self.host_free, self.host_seconds = host_blocks, host_seconds
        self._kept: dict[Any, int] = {}  # tokens on the host
        self._moved = 0  # blocks, since the last step

    def hit(self, request: Any) -> int:
        """See BlockPool: what the host has of it."""
        return self._kept.get(request, 0)

    def admit(self, request: Any) -> int:
        """See BlockPool. Its blocks are copied back."""
        tokens = super().admit(request)
        if self._kept.pop(request, 0):
            self.host_free += self.blocks_for(tokens)
            self._moved += self.blocks_for(tokens)
        return tokens

    def preempt(self, request: Any) -> int:
        """See BlockPool. Its blocks are copied to the host, if there is room."""
        tokens = request.computed
        blocks = self.blocks_for(tokens)
        lost = super().preempt(request)
        if not tokens or blocks > self.host_free:
            return lost
        self._kept[request] = tokens
        self.host_free -= blocks
        self._moved += blocks
        return 0

    def forget(self, request: Any) -> int:
        """See BlockPool: what the host has of it is free again."""
        tokens = self._kept.pop(request, 0)
        self.host_free += self.blocks_for(tokens)
        return tokens

    def copying(self) -> float:
        """See BlockPool."""
        blocks, self._moved = self._moved, 0
        return blocks * self.host_seconds
