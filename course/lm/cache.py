"""Keys and values in blocks. Which block belongs to whom is decided elsewhere and comes as block tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course.base import settings
from course.lm.config import Config
from course.lm.errors import LMError


class Blocks:
    """`num_blocks` blocks of `block_size` tokens, wherever their keys and values are. ValueError for none of either."""

    def __init__(self, num_blocks: int, block_size: int):
        self.num_blocks = settings.whole("num_blocks", num_blocks)
        self.block_size = settings.whole("block_size", block_size, high=2**20)

    def tables(self, block_tables: object, lengths: np.ndarray) -> np.ndarray:
        """The block tables as an array [rows, blocks of the longest], entries that a row does not need set to 0.

        block_tables: a list of block numbers for each row, or an array [rows, any width]. lengths: tokens of each row,
        those of the coming step included. LMError if a table is too short or names a block that is not there.
        """
        blocks = -(-lengths // self.block_size)
        wide = np.zeros((len(lengths), int(blocks.max())), np.intp)
        if not isinstance(block_tables, Sequence | np.ndarray) or len(block_tables) != len(lengths):
            raise LMError(f"Each of the {len(lengths)} rows needs a block table.")
        for row, (table, count) in enumerate(zip(block_tables, blocks.tolist(), strict=True)):
            if len(table) < count:
                raise LMError(
                    f"Row {row} has {lengths[row]} tokens and needs {count} blocks; its block table has {len(table)}."
                )
            wide[row, :count] = table[:count]
        if wide.min() < 0 or wide.max() >= self.num_blocks:
            bad = int(wide.min()) if wide.min() < 0 else int(wide.max())
            raise LMError(f"A block table names block {bad}; there are {self.num_blocks} blocks, from 0 on.")
        return wide


class PagedKV(Blocks):
    """Keys and values of all layers.

    keys, values: float32 [layers, num_blocks, block_size, KV heads, head dimension]. ValueError for no blocks or no
    tokens in them; LMError if the memory is not there.
    """

    def __init__(self, config: Config, num_blocks: int, block_size: int = 16):
        super().__init__(num_blocks, block_size)
        heads, dim = config.num_key_value_heads, config.head_dim
        shape = (config.num_hidden_layers, self.num_blocks, self.block_size, heads, dim)
        try:
            self.keys, self.values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        except (MemoryError, ValueError):
            size = 8 * float(np.prod(shape, dtype=float))
            raise LMError(
                f"{self.num_blocks:,} blocks of {self.block_size:,} tokens take {size / 2**30:,.1f} GiB, which this "
                "machine does not have: ask for fewer blocks."
            ) from None
