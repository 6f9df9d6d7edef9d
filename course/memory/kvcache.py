"""KV memory as blocks of tokens: how many there are, and what a sequence needs."""

from dataclasses import dataclass

from course.base import settings
from course.memory.block_pool import BlockPool, Count, blocks_for
from course.memory.contiguous_pool import FITS, RESERVES, ContiguousPool
from course.memory.swap_pool import SwapPool
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION, release


@dataclass(frozen=True)
class KVCache:
    """`num_blocks` blocks of `block_size` tokens. A sequence holds whole blocks, one more when the last is full.

    Out of blocks, the running sequence admitted last gives all of its blocks back, waits at the head of the queue and
    is computed again (recompute preemption, vLLM V1's only kind). This is a description and never changes: `open`
    makes the pool that an engine fills. engine_version: the release of vLLM whose pool it is; it decides which of the
    free blocks are reused first, and so only what a prefix can hit. prefix_caching: full blocks stay until their room
    is needed, and requests that begin alike share them (`PrefixPool`); a Workload says who does (`prefix`).

    Two rivals of recompute and of paging, for a simulated engine:
    host_blocks: room for so many blocks of preempted requests on the host. They are copied there and back, host_seconds
    for each block one way, charged to the coming step (`SwapPool`; `copy_seconds` has the seconds of a bandwidth).
    reserve: "longest", "power of two" or "length": no paging, but one piece for each request, for max_model_len tokens
    or for its prompt and its guessed answer (`ContiguousPool`). compaction: seconds to move a block when pieces are
    pushed together; None: they are not. fit: a piece goes into the smallest hole that holds it ("best") or the "first".

    Raises ValueError for sizes below 1, for what is no version, for anything but True or False, and for options that
    contradict each other.
    """

    num_blocks: int
    block_size: int = 16
    engine_version: str = DEFAULT_ENGINE_VERSION
    prefix_caching: bool = False
    host_blocks: int = 0
    host_seconds: float = 0.0
    reserve: str | None = None
    max_model_len: int | None = None
    compaction: float | None = None
    fit: str = "best"

    def __post_init__(self):
        object.__setattr__(self, "num_blocks", settings.whole("num_blocks", self.num_blocks))
        object.__setattr__(self, "block_size", settings.whole("block_size", self.block_size, high=2**20))
        release(str(self.engine_version))
        object.__setattr__(self, "prefix_caching", settings.flag("prefix_caching", self.prefix_caching))
        object.__setattr__(self, "host_blocks", settings.whole("host_blocks", self.host_blocks, low=0))
        object.__setattr__(self, "host_seconds", settings.real("host_seconds", self.host_seconds, low=0))
        self._check_reserve()
        if self.prefix_caching + bool(self.host_blocks) + bool(self.reserve) > 1:
            raise ValueError("prefix_caching, host_blocks and reserve are not modelled together: choose one of them")

    def _check_reserve(self) -> None:
        if self.reserve is None:
            if self.max_model_len is not None or self.compaction is not None or self.fit != "best":
                raise ValueError(
                    "max_model_len, compaction and fit belong to pieces that are reserved: set reserve as well"
                )
            return
        if self.reserve not in RESERVES:
            raise ValueError(f"reserve must be one of {', '.join(RESERVES)}, not {settings.quote(self.reserve)}")
        if self.fit not in FITS:
            raise ValueError(f"fit must be one of {', '.join(FITS)}, not {settings.quote(self.fit)}")
        longest = settings.whole("max_model_len", self.max_model_len)
        object.__setattr__(self, "max_model_len", longest)
        blocks = self.blocks_for(longest)
        if blocks > self.num_blocks:
            raise ValueError(
                f"one request of max_model_len={longest} tokens takes {blocks} blocks, and num_blocks is "
                f"{self.num_blocks}: the cache cannot hold it; raise num_blocks, or lower max_model_len"
            )
        if self.compaction is not None:
            object.__setattr__(self, "compaction", settings.real("compaction", self.compaction, low=0))

    @property
    def simulated_only(self) -> str:
        """The option for which only a simulated engine has a pool; empty if there is none."""
        if self.prefix_caching:
            return "prefix_caching"
        return "host_blocks" if self.host_blocks else "reserve" if self.reserve else ""

    def open(self) -> BlockPool:
        """A fresh pool of these blocks, all of them free."""
        if self.prefix_caching:
            from course.memory.prefix_pool import PrefixPool  # not needed by others

            return PrefixPool(self.num_blocks, self.block_size, release(self.engine_version).unhashed_first)
        if self.host_blocks:
            return SwapPool(self.num_blocks, self.block_size, self.host_blocks, self.host_seconds)
        if self.reserve:
            longest = self.max_model_len or 0
            return ContiguousPool(self.num_blocks, self.block_size, self.reserve, longest, self.compaction, self.fit)
        return BlockPool(self.num_blocks, self.block_size)

    def blocks_for(self, tokens: Count) -> Count:
        """Blocks that hold so many tokens, of one sequence or of each of an array of them."""
        return blocks_for(tokens, self.block_size)
