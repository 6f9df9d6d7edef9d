"""Fresh random inputs for the operations, poisoned outputs, and how far results may be from float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import numbers
from course.gpu.ops.queue import Queue

BLOCK = 16


def normal(rng: np.random.Generator, *shape: int, kind: str = "bf16", scale: float = 1.0) -> np.ndarray:
    """Normal numbers, stored as `kind`."""
    return numbers.encode(rng.standard_normal(shape) * scale, kind)


def poisoned(queue: Queue, *shape: int, kind: str = "bf16") -> Any:
    """An array of the device full of NaN: what is not written shows."""
    return queue.device.to_device(numbers.encode(np.full(shape, np.nan), kind))


def on_device(queue: Queue, *arrays: np.ndarray) -> list[Any]:
    """Copies on the device."""
    return [queue.device.to_device(np.ascontiguousarray(one)) for one in arrays]


def fetched(queue: Queue, array: Any, kind: str) -> np.ndarray:
    """The numbers of an array of the device, once all is done."""
    queue.wait()
    return numbers.decode(queue.device.to_numpy(array), kind)


def paged(rng: np.random.Generator, lengths: list[int], kv_heads: int, width: int, kind: str, spare: int = 3):
    """A cache of shuffled blocks and the table of sequences of these lengths: k, v, table.

    Places behind the end of a sequence, and blocks that nobody has, hold NaN.
    """
    need = [-(-length // BLOCK) for length in lengths]
    blocks = sum(need) + spare
    shape = (blocks, kv_heads, BLOCK, width)
    k, v = (numbers.encode(np.full(shape, np.nan), kind) for _ in range(2))
    table = np.zeros((len(lengths), max(need) + 1), np.int32)
    order = iter(rng.permutation(blocks))
    for s, length in enumerate(lengths):
        for i in range(need[s]):
            block = table[s, i] = next(order)
            here = min(BLOCK, length - i * BLOCK)
            for cache in (k, v):
                cache[block, :, :here] = normal(rng, kv_heads, here, width, kind=kind)
    return k, v, table


def close(found: np.ndarray, right: np.ndarray, bound: Any, what: str = "") -> None:
    """Fails where a result is farther from `right` than `bound`, or not a number."""
    error = np.abs(found.astype(np.float64) - right)
    worst = np.unravel_index(np.argmax(np.where(np.isnan(error), np.inf, error / bound)), error.shape)
    assert np.all(error <= bound), f"{what} {worst}: {found[worst]} instead of {right[worst]}"
