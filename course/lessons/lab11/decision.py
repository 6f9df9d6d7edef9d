"""The decision of lab 11: an engine with few CUDA graphs, what its log says runs, and the size that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from course.exercises.decision import one_flag, the_flag
from course.exercises.nodes import as_number
from course.steptime import recorded

STEP = recorded("h200_llama3_8b")
FLAG = "--cudagraph-capture-sizes"
SIZES = (1, 2, 4, 8, 16, 32, 64, 256)
"""Batches that the engine captured."""
DEFAULT = (1, 2, 4, *range(8, 257, 8))
"""What vLLM captures if nobody names sizes, up to 256."""
AROUND, LINES, CONTEXT = 100, 600, 1_000
"""Requests in flight on average, lines of the log, tokens of each sequence."""
SHOWN, BIN = 1, 8
MULTIPLE = 8
"""Sizes that one would list."""


def one_size(answer: Any) -> dict[str, Any] | str:
    """The flag and, of the right one, the size that is new in the list of all; one size alone, in words.

    Raises ValueError for a list without the sizes that there are, or with none or several new ones, and as `one_flag`.
    """
    flag, value = the_flag(answer)
    if flag == FLAG:
        found = {as_number(part.strip(" []()")) for part in str(value).replace(",", " ").split()}
        if len(found) == 1 and None not in found:
            (size,) = found
            return f"the list is {size} alone: smaller batches are padded to it, larger ones have no graph"
        lacks, new = sorted(set(SIZES) - found), [size for size in found if size not in SIZES]
        if lacks:
            raise ValueError(
                f"the list lacks {', '.join(map(str, lacks))}: batches would be padded further, or have no graph"
            )
        if len(new) != 1:
            raise ValueError(f"add one size to those of the log, not {len(new)}")
        answer = {flag: new[0]}
    return one_flag(FLAG)(answer)


@cache
def running(seed: int = 0, around: int = AROUND) -> tuple[int, ...]:
    """Requests that run, by line of the log: a client that keeps about so many in flight."""
    return tuple(int(n) for n in np.random.default_rng(seed).poisson(around, LINES))


def padded_to(batch: int, sizes: Sequence[int]) -> int:
    """The smallest captured size that holds a batch. Raises ValueError for a batch beyond all of them."""
    fits = [size for size in sizes if size >= batch]
    if not fits:
        raise ValueError(f"no graph holds {batch} sequences: the largest was captured for {max(sizes)}")
    return min(fits)


def step_seconds(batch: int, rows: int) -> float:
    """A step of `batch` decodes in a graph of so many rows: padding is multiplied and attends to nothing.

    Modelled: rows of padding take what decodes without context take in the recording.
    """
    return STEP.decode_line(rows)[0] + STEP.decode_line(batch)[1] * batch * CONTEXT


def speed(sizes: Sequence[int], batches: Sequence[int]) -> float:
    """Tokens/s over these batches."""
    return sum(batches) / sum(step_seconds(batch, padded_to(batch, sizes)) for batch in batches)


@cache
def speed_with(size: int, seed: int = 0, around: int = AROUND) -> float:
    """Tokens/s if one more size is captured."""
    return speed((*SIZES, size), running(seed, around))


def speed_now(seed: int = 0, around: int = AROUND) -> float:
    """Tokens/s with the sizes that there are."""
    return speed(SIZES, running(seed, around))


def speed_with_slots(slots: int) -> float:
    """Tokens/s with so many slots and more requests than that, with the sizes that there are."""
    return speed(SIZES, (slots,))


def best(seed: int = 0, around: int = AROUND) -> int:
    """The multiple of eight that gives the most tokens/s."""
    return max(range(72, 256, MULTIPLE), key=lambda size: speed_with(size, seed, around))


def accepted() -> list[int]:
    """Multiples of eight that lose less than 3% against the best."""
    sizes = range(72, 256, MULTIPLE)
    return [size for size in sizes if speed_with(size) > 0.97 * speed_with(best())]


def log() -> str:
    """What the engine writes, and its lines counted by what runs."""
    found = running()
    lines = [
        "# simulated, shortened",
        f"'cudagraph_capture_sizes': {list(SIZES)}",
        *(f"Engine 000: Running: {n} reqs" for n in found[:SHOWN]),
        f"... {LINES} lines, by Running:",
    ]
    first = min(found) // BIN * BIN
    edges = range(first, max(found) + 1, BIN)
    counts = [sum(edge < n <= edge + BIN for n in found) for edge in edges]
    lines += [f"{f'{edge + 1}-{edge + BIN}':>8}{count:5}" for edge, count in zip(edges, counts, strict=True) if count]
    return "\n".join(lines)
