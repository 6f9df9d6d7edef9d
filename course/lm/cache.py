"""Keys and values in blocks. Which block belongs to whom is decided elsewhere and comes as block tables."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

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


def prefix_ids(prompts: Sequence[Sequence[int]], block_size: int) -> tuple[tuple[int, ...], ...]:
    """A number for each full block of each prompt, equal where all tokens up to the end of the block are equal."""
    known: dict[tuple[int, ...], int] = {}
    found = []
    for tokens in prompts:
        ids, before = [], -1
        for end in range(block_size, len(tokens) + 1, block_size):
            before = known.setdefault((before, *tokens[end - block_size : end]), len(known))
            ids.append(before)
        found.append(tuple(ids))
    return tuple(found)


class SharedTables:
    """Block tables of requests that share the full blocks of their prompts. Which of these are there, the engine says.

    ids: those of `prefix_ids`, by row; a full block behind them is found again by its own request alone. A block that
    nobody holds keeps what is in it until all that were given back before it have been taken again. With `num_blocks`
    more than the engine counts, that is later than in its pool, so that what the pool finds is here.
    """

    def __init__(self, ids: Sequence[Sequence[int]], num_blocks: int, block_size: int):
        self._ids, self._size = ids, block_size
        self._unused: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))  # the next to be taken first
        self._holders = [0] * num_blocks
        self._holding: dict[int, Hashable] = {}  # from a block to what it holds
        self._with: dict[Hashable, list[int]] = {}  # and back, the first that was filled first
        self._tables: dict[Any, list[int]] = {}  # by request

    def table(self, request: Any, tokens: int, drafts: int = 0) -> list[int]:
        """The numbers of its blocks, for `tokens` more than it has computed, and for drafts that may prove wrong."""
        table = self._tables.get(request)
        if table is None:
            found = range(request.computed // self._size)
            self._tables[request] = table = [self._with[self._id(request, place)][0] for place in found]
            for number in table:
                self._holders[number] += 1
                self._unused.pop(number, None)
        known = request.computed + tokens
        while len(table) * self._size < known + drafts:
            table.append(self._taken())
        self._fill(request, known)
        return table

    def verified(self, request: Any, known: int) -> None:
        """So many tokens are right: blocks behind them, taken for drafts, are given back and the next to be taken."""
        table = self._tables[request]
        while (len(table) - 1) * self._size >= known:
            number = table.pop()
            self._holders[number] = 0
            self._unused[number] = None
            self._unused.move_to_end(number, last=False)
        self._fill(request, known)

    def _fill(self, request: Any, known: int) -> None:
        """Its blocks that so many tokens fill can be found from now on."""
        for place, number in enumerate(self._tables[request][: known // self._size]):
            if number not in self._holding:
                one = self._holding[number] = self._id(request, place)
                self._with.setdefault(one, []).append(number)

    def _id(self, request: Any, place: int) -> Hashable:
        ids = self._ids[request.index]
        return ids[place] if place < len(ids) else (request.index, place)

    def _taken(self) -> int:
        number = next(iter(self._unused))
        del self._unused[number]
        self._holders[number] = 1
        if (one := self._holding.pop(number, None)) is not None:
            self._with[one].remove(number)
            if not self._with[one]:
                del self._with[one]
        return number

    def release(self, request: Any) -> None:
        """Its answer is complete, or it lost its slot: its blocks are given back, the last one first."""
        for number in reversed(self._tables.pop(request, [])):
            self._holders[number] -= 1
            if not self._holders[number]:
                self._unused[number] = None

    def release_preempted(self) -> None:
        """The same for all who have nothing in the cache any more."""
        for request in [request for request in self._tables if not request.computed]:
            self.release(request)
