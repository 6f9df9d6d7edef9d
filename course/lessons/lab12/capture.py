"""The functions that lab 12 asks for: how long graphs pay, and the loop that captures sizes. With the usual mistakes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

Plan = tuple[list[int], list[int | None]]
Loop = Callable[[Sequence[int], Sequence[int]], Plan]

UNTIL_PROBES = [(7.0, 0.5, 1.1), (5.0, 0.4, 2.0), (8.0, 1.0, 1.25), (2.0, 0.5, 8.0)]
"""(us of a launch, us between kernels in a graph, gain that is wanted)."""
LOOP_PROBES = [
    ([3, 3, 9, 1], [1, 2, 4, 8]),
    ([8, 7, 5, 4], [2, 4, 8]),
    ([1, 1, 1], [16]),
    ([100], [1, 2]),
    ([], [4]),
    ([2, 6, 2, 5, 16, 17], [4, 8, 16]),
]
WORKED = ([3, 3, 9, 1], [1, 2, 4, 8])


def until(launch: float, between: float, gain: float) -> float:
    """The kernel time [us] at which a step of many kernels is still `gain` times as fast as a graph; 0 if never.

    By launches a kernel ends every `launch` us while it is shorter, in a graph every kernel + `between` us.
    """
    return max(0.0, launch / gain - between)


def until_without_between(launch: float, between: float, gain: float) -> float:
    """A graph whose kernels follow each other without a gap."""
    return max(0.0, launch / gain)


def until_as_fast(launch: float, between: float, gain: float) -> float:
    """Where a graph gains nothing at all any more, whatever gain is wanted."""
    return max(0.0, launch - between)


def until_negative(launch: float, between: float, gain: float) -> float:
    """Times below zero."""
    return launch / gain - between


def until_multiplied(launch: float, between: float, gain: float) -> float:
    """The gain on the wrong side."""
    return launch * gain - between


def until_other_gain(launch: float, between: float, gain: float) -> float:
    """Both parts divided by the gain."""
    return max(0.0, (launch - between) / gain)


def until_hidden(launch: float, between: float, gain: float) -> float:
    """The twin: kernels of the graph overlap by `between` us, as with dependent launch."""
    return launch / gain + between


def loop(batches: Sequence[int], sizes: Sequence[int]) -> Plan:
    """Which sizes are captured, in their order, and the size that serves each batch; None: launched one by one."""
    return _loop(batches, sizes, lambda batch: bisect_left(sorted(sizes), batch))


def _loop(batches: Sequence[int], sizes: Sequence[int], place: Callable[[int], int]) -> Plan:
    captured: list[int] = []
    served: list[int | None] = []
    for batch in batches:
        at = place(batch)
        size = sorted(sizes)[at] if at < len(sizes) else None
        if size is not None and size not in captured:
            captured.append(size)
        served.append(size)
    return captured, served


def rounds_down(batches: Sequence[int], sizes: Sequence[int]) -> Plan:
    """The largest size that is not above the batch."""
    return _loop(batches, sizes, lambda batch: max(0, sum(size <= batch for size in sizes) - 1))


def always_largest(batches: Sequence[int], sizes: Sequence[int]) -> Plan:
    """Every batch padded to the largest size."""
    return _loop(batches, sizes, lambda batch: len(sizes) - 1 if batch <= max(sizes) else len(sizes))


def largest_for_more(batches: Sequence[int], sizes: Sequence[int]) -> Plan:
    """What is larger than all sizes runs in the largest, which has no room for it."""
    return _loop(batches, sizes, lambda batch: min(len(sizes) - 1, bisect_left(sorted(sizes), batch)))


def next_above(batches: Sequence[int], sizes: Sequence[int]) -> Plan:
    """A batch of just a size is padded to the next."""
    return _loop(batches, sizes, lambda batch: sum(size <= batch for size in sizes))


def captures_again(batches: Sequence[int], sizes: Sequence[int]) -> Plan:
    """A capture for each step."""
    served = loop(batches, sizes)[1]
    return [size for size in served if size is not None], served


def captures_batches(batches: Sequence[int], sizes: Sequence[int]) -> Plan:
    """A graph for each batch as it comes, not for the sizes."""
    fits = [batch for batch in batches if batch <= max(sizes)]
    return list(dict.fromkeys(fits)), [batch if batch <= max(sizes) else None for batch in batches]


def captures_all(batches: Sequence[int], sizes: Sequence[int]) -> Plan:
    """The twin: all sizes at the start, the largest first, as an engine does before it serves."""
    return sorted(sizes, reverse=True), loop(batches, sizes)[1]
