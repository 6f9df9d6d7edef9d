"""How much of its prompts a prefix cache would find, from the block ids of a workload alone."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from course.base.settings import whole
from course.workload import Workload


@dataclass(frozen=True, eq=False, repr=False)
class PrefixHits:
    """hit_blocks: for each request its leading blocks found in the cache, int64 of shape (n,). blocks: all it has."""

    hit_blocks: np.ndarray
    blocks: np.ndarray

    @property
    def rate(self) -> float:
        """Share of all blocks that were found; NaN where there are none."""
        total = int(self.blocks.sum())
        return int(self.hit_blocks.sum()) / total if total else float("nan")

    def __repr__(self) -> str:
        return f"PrefixHits({int(self.hit_blocks.sum()):,} of {int(self.blocks.sum()):,} blocks, {self.rate:.1%})"


def lru_hits(load: Workload, capacity: int | None = None) -> PrefixHits:
    """Hits in a cache of `capacity` blocks (None: unlimited) that forgets the least recently used.

    Requests come in order of arrival, one after the other: no two overlap in time, so a prefix is there as soon as its
    first request has been looked up. A request hits its leading blocks up to the first that is missing; then all its
    blocks count as used, in their order, and the cache is cut to its capacity. Outputs are not cached.

    ValueError for a workload without prefix ids.
    """
    if load.prefix is None:
        raise ValueError("these requests have no prefix ids: read a trace that has block ids, such as Mooncake's")
    most = None if capacity is None else whole("capacity", capacity)
    cache: OrderedDict[Hashable, None] = OrderedDict()
    hits = np.zeros(len(load), dtype=np.int64)
    for i, ids in enumerate(load.prefix):
        hits[i] = next((place for place, block in enumerate(ids) if block not in cache), len(ids))
        for block in ids:
            cache[block] = None
            cache.move_to_end(block)
        while most is not None and len(cache) > most:
            cache.popitem(last=False)
    return PrefixHits(hits, np.array([len(ids) for ids in load.prefix], dtype=np.int64))
