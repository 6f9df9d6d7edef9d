"""The traces of Mooncake: times in milliseconds, blocks of 512 tokens, the last block partial.

    {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, ..., 2353]}

Arrivals come in buckets of 3 seconds, which `course.traces.read` points out.
"""

from collections.abc import Sequence

from course.traces import blocks
from course.traces.rows import PICOSECONDS

BLOCK_TOKENS = 512


def matches(sample: Sequence[dict]) -> bool:
    """Whether rows are of this format, to be asked after Qwen-Bailian."""
    return bool(sample) and all(map(blocks.looks_like, sample[:1]))


class Reader(blocks.Reader):
    """Rows and what they say."""

    note = "read as Mooncake: times in milliseconds, one prefix id per block of 512 tokens"
    block_tokens, unit = BLOCK_TOKENS, PICOSECONDS // 1_000
