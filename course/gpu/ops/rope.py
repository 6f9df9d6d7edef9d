"""Rotary position embedding: pairs of numbers of a head turn by angles that grow with the token's position."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.base.settings import whole
from course.gpu.ops import numbers
from course.gpu.ops.queue import Launch, Queue, array, multiple

THREADS = 128


def turns(positions: int, width: int, theta: float = 500_000.0) -> np.ndarray:
    """Cosine and sine of position x theta^(-2 i / width), float32 of shape (positions, width / 2, 2).

    Su et al., arXiv:2104.09864, equation 15. Without the scaling of long contexts that Llama 3.1 adds.
    """
    angles = np.arange(positions)[:, None] * float(theta) ** (-np.arange(0, width, 2) / width)
    return np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32)


def prepare(
    queue: Queue, x: Any, table: Any, positions: Any, *, rotated: int, kind: str = "bf16", chained: bool = False
) -> Launch:
    """Turns the first `rotated` heads of each token, in place.

    x: (tokens, heads, width). table: `turns(...)` on the device. positions: (tokens,) int32, each below the table's
    end (not looked at: they are on the device). Raises ValueError for arrays that do not fit together.
    """
    tokens, heads, width = (int(size) for size in x.shape)
    multiple("width", width, 2 * numbers.wide(kind), "16 bytes of each half at a time")
    whole("rotated", rotated, high=heads)
    array("x", x, (tokens, heads, width), kind)
    array("table", table, (None, width // 2, 2), np.float32)
    array("positions", positions, (tokens,), np.int32)
    if queue.plain:
        return lambda: np.copyto(x[:, :rotated], twin(x[:, :rotated], table, positions, kind))
    units = rotated * (width // (2 * numbers.wide(kind)))
    args = (x, table, positions, heads, rotated, width)
    return queue.prepare(queue.kernel("rope", kind), (tokens, -(-units // THREADS)), THREADS, args, chained=chained)


def twin(x: np.ndarray, table: np.ndarray, positions: np.ndarray, kind: str) -> np.ndarray:
    """The kernel in NumPy: float32 inside, rounded once at the end."""
    return numbers.encode(rotate(numbers.decode(x, kind), np.asarray(table)[positions]), kind)


def reference(x: np.ndarray, positions: np.ndarray, theta: float) -> np.ndarray:
    """The definition, in float64, of all heads of `x` (tokens, heads, width)."""
    width = x.shape[-1]
    angles = np.asarray(positions)[:, None] * float(theta) ** (-np.arange(0, width, 2) / width)
    return rotate(np.asarray(x, dtype=np.float64), np.stack([np.cos(angles), np.sin(angles)], -1))


def rotate(x: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Heads of tokens (tokens, heads, width), turned by the cosines and sines (tokens, width / 2, 2)."""
    first, second = np.split(x, 2, axis=-1)
    cosine, sine = turn[:, None, :, 0], turn[:, None, :, 1]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)
