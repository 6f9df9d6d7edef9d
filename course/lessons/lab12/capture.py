"""The loop that lab 12 asks for, which captures sizes and rounds up, its usual mistakes, and how long graphs pay."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

Steps = dict[int, int]
"""Steps by the size of the graph that served them; those of size 0 were launched one by one."""

PROBES = [
    ([3, 3, 9, 1], [1, 2, 4, 8]),
    ([8, 7, 5, 4], [2, 4, 8]),
    ([1, 1, 1], [16]),
    ([100], [1, 2]),
    ([2, 6, 2, 5, 16, 17, 17], [4, 8, 16]),
    ([5, 5, 9, 12, 3, 40], [16, 4, 8]),
]
WORKED = ([3, 3, 9, 1], [1, 2, 4, 8])
PAYS, PAYS_TWIN = (7.0, 0.5, 1.25), (5.0, 1.0, 2.0)
"""Microseconds of a launch and between two kernels of a graph, and the gain that is asked for: of exercise 2."""


def until(launch: float, between: float, gain: float) -> float:
    """The kernel time [us] up to which a graph of many kernels is `gain` times as fast as launches.

    By launches a kernel ends every `launch` us while it is shorter, in a graph every kernel + `between` us.
    """
    return launch / gain - between


def loop(batches: Sequence[int], sizes: Sequence[int]) -> Steps:
    """How many of the batches run in each size; a size that none needs is not captured."""
    return _counted(batches, sizes, lambda batch: bisect_left(sorted(sizes), batch))


def _counted(
    batches: Sequence[int],
    sizes: Sequence[int],
    place: Callable[[int], int],
    by: Callable[[int, int], int] | None = None,
) -> Steps:
    found: Steps = {}
    for batch in batches:
        at = place(batch)
        size = sorted(sizes)[at] if at < len(sizes) else 0
        found[size] = found.get(size, 0) + (by(size, batch) if by else 1)
    return found


def rounds_down(batches: Sequence[int], sizes: Sequence[int]) -> Steps:
    """The largest size that is not above the batch."""
    return _counted(batches, sizes, lambda batch: max(0, sum(size <= batch for size in sizes) - 1))


def always_largest(batches: Sequence[int], sizes: Sequence[int]) -> Steps:
    """Every batch padded to the largest size."""
    return _counted(batches, sizes, lambda batch: len(sizes) - (batch <= max(sizes)))


def largest_for_more(batches: Sequence[int], sizes: Sequence[int]) -> Steps:
    """What is larger than all sizes runs in the largest, which has no room for it."""
    return _counted(batches, sizes, lambda batch: min(len(sizes) - 1, bisect_left(sorted(sizes), batch)))


def next_above(batches: Sequence[int], sizes: Sequence[int]) -> Steps:
    """A batch of just a size is padded to the next."""
    return _counted(batches, sizes, lambda batch: sum(size <= batch for size in sizes))


def captures_batches(batches: Sequence[int], sizes: Sequence[int]) -> Steps:
    """A graph for each batch as it comes, not for the sizes."""
    return _counted(batches, sorted({*batches}), lambda batch: bisect_left(sorted({*batches}), batch))


def counts_none(batches: Sequence[int], sizes: Sequence[int]) -> Steps:
    """Captured sizes, each counted once."""
    return dict.fromkeys(loop(batches, sizes), 1)


def padding(batches: Sequence[int], sizes: Sequence[int]) -> Steps:
    """The twin: rows of padding by size; those that are launched have none."""
    return _counted(
        batches, sizes, lambda batch: bisect_left(sorted(sizes), batch), lambda size, batch: max(0, size - batch)
    )
