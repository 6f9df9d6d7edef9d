"""How sequences of different lengths are cut into items of work, so that a decode step keeps a whole card busy.

One long sequence beside many short ones is the hard case: items of about equal size, whatever sequence they are from,
keep it short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.base.settings import quote, whole

BLOCK = 16
SECONDS_A_START, SECONDS_A_MERGE, SECONDS_A_PART = 2.2e-6, 1.0e-6, 0.12e-6
"""What passes before an item has its first block, what it costs that a sequence is cut at all, and what each part of it
costs when they are added up."""
LATE, LATE_UNEQUAL = 0.02, 0.46
"""Shares of the longest item, and of what it is longer than the mean, that a card which is full at first waits for at
the end. These constants were fitted to whole steps of 33 batches on an H200, each cut in up to 30 ways, since a launch
that is fast alone may be slow behind the product of a step. Against the time that the bytes take, what they choose
costs 0.6% more than the best on average, 6% at most."""


@dataclass(frozen=True)
class WorkList:
    """items: (sequence, first block, blocks) of each, int32 (n, 3). spans: (first item, items) of each sequence."""

    items: np.ndarray
    spans: np.ndarray

    def padded(self, places: int) -> np.ndarray:
        """The items, and empty ones up to `places`. Raises ValueError if they are more."""
        if len(self.items) > places:
            raise ValueError(f"{len(self.items)} items of work do not fit into the {places} places prepared")
        return np.concatenate([self.items, np.zeros((places - len(self.items), 3), np.int32)])


def checked_lengths(lengths: Any, most: int | None = None) -> np.ndarray:
    """Tokens a sequence as int64. Raises ValueError for one that is not a whole number from 1 to `most`."""
    array = np.asarray(lengths)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise ValueError(f"lengths must be whole numbers of tokens, one per sequence, not {quote(lengths)}")
    for i in np.flatnonzero((array < 1) | (array > (most or np.iinfo(np.int32).max))):
        limit = f"1 to {most:,}" if most else "at least 1"
        raise ValueError(f"sequence {i} has a length of {array[i]:,} tokens: it must be {limit}, the new one included")
    return array.astype(np.int64)


def cut(lengths: Any, blocks: int) -> WorkList:
    """Items of at most `blocks` blocks of 16 tokens, those of one sequence as equal as can be.

    Raises ValueError for a length below 1.
    """
    need = -(-checked_lengths(lengths) // BLOCK)
    parts = -(-need // whole("blocks", blocks))
    order = np.argsort(-(need / parts), kind="stable")  # large items first: what is left for the end is small
    sequence = np.repeat(order, parts[order])
    first_item = np.empty_like(parts)
    first_item[order] = np.cumsum(parts[order]) - parts[order]
    part = np.arange(len(sequence)) - first_item[sequence]
    begin = need[sequence] * part // parts[sequence]
    end = need[sequence] * (part + 1) // parts[sequence]
    items = np.stack([sequence, begin, end - begin], 1).astype(np.int32)
    return WorkList(items, np.stack([first_item, parts], 1).astype(np.int32))


@dataclass(frozen=True)
class Card:
    """What `best_blocks` knows of a card and a kernel.

    slots: thread blocks the card holds at a time. block_seconds: what one block of one KV head costs when memory is
    busy. latency: seconds that a thread block takes for a block when no other block competes for memory.
    """

    slots: int
    block_seconds: float
    latency: float


def best_blocks(lengths: Any, kv_heads: int, card: Card, most_parts: int = 64) -> tuple[int, float]:
    """Blocks an item that should be fastest, and the seconds that a small model of the card expects.

    A launch takes what its bytes take, and no less than its longest item, as often as the card fills up with items;
    cutting a sequence costs a merge.
    """
    need = -(-checked_lengths(lengths) // BLOCK)
    longest = int(need.max())
    best, seconds = longest, np.inf
    for parts in (*range(1, 17), 20, 24, 32, 48, 64):
        blocks = -(-longest // parts)
        if parts > most_parts:
            break
        guess = float(_guess(need, blocks, kv_heads, card))
        if guess < seconds:
            best, seconds = blocks, guess
    return best, seconds


def _guess(need: np.ndarray, blocks: int, kv_heads: int, card: Card) -> float:
    """Seconds of a launch with items of at most `blocks` blocks."""
    parts = -(-need // blocks)
    items = int(parts.sum()) * kv_heads
    merged = int(parts[parts > 1].sum()) * kv_heads  # a sum that is left and fetched is about a block of traffic
    sizes = np.sort(np.repeat(need / parts, parts))
    if items <= card.slots:
        # All start at once. As the smaller ones end, those that are left share the memory, until it is no longer the
        # limit.
        active = kv_heads * np.arange(len(sizes), 0, -1)
        reads = float(np.diff(sizes, prepend=0) @ np.maximum(card.latency, active * card.block_seconds))
    else:  # those that wait start as others end, and the last ones end apart, unequal ones more so
        rounds = -(-items // card.slots)
        late = LATE * sizes[-1] + LATE_UNEQUAL * (sizes[-1] - sizes.mean())
        reads = (int(need.sum()) * kv_heads + late * card.slots) * card.block_seconds
        reads = max(reads, rounds * sizes[-1] * card.latency)
    reads += merged * card.block_seconds
    merge = SECONDS_A_MERGE + SECONDS_A_PART * int(parts.max()) if merged else 0.0
    return reads + SECONDS_A_START * max(1.0, items / card.slots) + merge


def table_of(blocks: Sequence[Sequence[int]], columns: int, cache_blocks: int) -> np.ndarray:
    """Block tables as one int32 array (sequences, columns), 0 behind the end of each.

    Raises ValueError for a table that is too long, or a block outside of the cache.
    """
    table = np.zeros((len(blocks), columns), np.int32)
    for i, one in enumerate(blocks):
        if len(one) > columns:
            raise ValueError(f"sequence {i} has {len(one)} blocks, and its table has room for {columns}")
        row = np.asarray(one, dtype=np.int64)
        wrong = row[(row < 0) | (row >= cache_blocks)]
        if wrong.size:
            raise ValueError(f"block {wrong[0]} of sequence {i} is outside the cache of {cache_blocks} blocks")
        table[i, : len(row)] = row
    return table
