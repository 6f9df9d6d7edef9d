"""KV memory as blocks of tokens: how many there are, and what a sequence needs."""

from dataclasses import dataclass

from course.base import settings


@dataclass(frozen=True)
class KVCache:
    """`num_blocks` blocks of `block_size` tokens. A sequence holds whole blocks, one more when the last is full.

    Out of blocks, the running sequence admitted last gives all of its blocks back, waits at the head of the queue and
    is computed again (recompute preemption, vLLM V1's only kind). Raises ValueError for sizes below 1.
    """

    num_blocks: int
    block_size: int = 16

    def __post_init__(self):
        object.__setattr__(self, "num_blocks", settings.whole("num_blocks", self.num_blocks))
        object.__setattr__(self, "block_size", settings.whole("block_size", self.block_size, high=2**20))


def blocks_for(tokens: int, block_size: int) -> int:
    """Blocks that hold this many tokens: tokens / block_size, rounded up."""
    return -(-tokens // block_size)
