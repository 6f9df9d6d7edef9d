"""Random numbers that depend on nothing but their place and a seed, the same bits on every device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from course.base.settings import real, whole
from course.gpu.ops import numbers
from course.gpu.ops.queue import Launch, Queue, array

THREADS = 256


def prepare(queue: Queue, out: Any, *, bound: float, seed: int = 0, first: int = 0, kind: str = "bf16") -> Launch:
    """Fills an array of any shape with numbers uniform in [-bound, bound), whose spread is bound / sqrt(3).

    first: place of the first number in the stream of this seed. Raises ValueError for an array with gaps.
    """
    array("out", out, [None] * len(out.shape), kind)
    bound, seed, first = real("bound", bound, low=0), whole("seed", seed, low=0), whole("first", first, low=0)
    count = math.prod(out.shape)
    if queue.plain:
        return lambda: np.copyto(out, twin(count, bound=bound, seed=seed, first=first, kind=kind).reshape(out.shape))
    blocks = min(-(-count // THREADS), 16 * 132 if queue.device.is_gpu else 4)
    args = (out, count, first, seed, bound)
    return queue.prepare(queue.kernel("fill", kind), (blocks,), THREADS, args)


def twin(count: int, *, bound: float, seed: int = 0, first: int = 0, kind: str = "bf16") -> np.ndarray:
    """The same numbers from NumPy: the bits of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), its upper 24."""
    with np.errstate(over="ignore"):
        z = (np.arange(count, dtype=np.uint64) + np.uint64(first)) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    whole_numbers = (z >> np.uint64(40)).astype(np.int32) - (1 << 23)
    return numbers.encode(np.float32(bound) * whole_numbers.astype(np.float32) * np.float32(2.0**-23), kind)
