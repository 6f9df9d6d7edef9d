"""KV memory as blocks of tokens: how many there are, and what a sequence needs."""

from dataclasses import dataclass

from course.base import settings
from course.memory.block_pool import BlockPool, Count, blocks_for
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION, release


@dataclass(frozen=True)
class KVCache:
    """`num_blocks` blocks of `block_size` tokens. A sequence holds whole blocks, one more when the last is full.

    Out of blocks, the running sequence admitted last gives all of its blocks back, waits at the head of the queue and
    is computed again (recompute preemption, vLLM V1's only kind). This is a description and never changes: `open`
    makes the pool that an engine fills. engine_version: the release of vLLM whose pool it is; it decides which of the
    free blocks are reused first, and so only what a prefix can hit. prefix_caching: full blocks stay until their room
    is needed, and requests that begin alike share them (`PrefixPool`); a Workload says who does (`prefix`). Raises
    ValueError for sizes below 1, for what is no version, and for anything but True or False.
    """

    num_blocks: int
    block_size: int = 16
    engine_version: str = DEFAULT_ENGINE_VERSION
    prefix_caching: bool = False

    def __post_init__(self):
        object.__setattr__(self, "num_blocks", settings.whole("num_blocks", self.num_blocks))
        object.__setattr__(self, "block_size", settings.whole("block_size", self.block_size, high=2**20))
        release(str(self.engine_version))
        object.__setattr__(self, "prefix_caching", settings.flag("prefix_caching", self.prefix_caching))

    def open(self) -> BlockPool:
        """A fresh pool of these blocks, all of them free."""
        if self.prefix_caching:
            from course.memory.prefix_pool import PrefixPool  # not needed by others

            return PrefixPool(self.num_blocks, self.block_size, release(self.engine_version).unhashed_first)
        return BlockPool(self.num_blocks, self.block_size)

    def blocks_for(self, tokens: Count) -> Count:
        """Blocks that hold so many tokens, of one sequence or of each of an array of them."""
        return blocks_for(tokens, self.block_size)
