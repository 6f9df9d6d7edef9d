"""The anonymised traces of Qwen on Aliyun Bailian: times in seconds, blocks of 16 tokens.

    {"chat_id": 159, "parent_chat_id": 55, "timestamp": 61.114, "input_length": 521, "output_length": 132,
     "type": "text", "turn": 2, "hash_ids": [1089, 1090, ..., 13148]}

`class_` is the type of the request: text, search, image, file.
"""

from collections.abc import Sequence

from course.traces import blocks
from course.traces.rows import PICOSECONDS

BLOCK_TOKENS = 16


def matches(sample: Sequence[dict]) -> bool:
    """Whether rows are of this format and not of Mooncake's: their keys, else most of their block counts, say so."""
    rows = [row for row in sample if blocks.looks_like(row)]
    if any("chat_id" in row for row in rows):
        return True
    small, large = (sum(blocks.fits(row, size) for row in rows) for size in (BLOCK_TOKENS, 512))
    return small > large


class Reader(blocks.Reader):
    """Rows and what they say."""

    note = "read as Qwen-Bailian: times in seconds, one prefix id per block of 16 tokens"
    block_tokens, unit, slack, class_key = BLOCK_TOKENS, PICOSECONDS, 1, "type"
