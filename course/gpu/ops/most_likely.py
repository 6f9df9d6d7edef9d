"""The place of the largest number of each row: the token that greedy decoding takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import numbers
from course.gpu.ops.queue import Launch, Queue, array, multiple

THREADS = 512


def prepare(queue: Queue, x: Any, out: Any, *, kind: str = "bf16", chained: bool = False) -> Launch:
    """x: (rows, columns), columns a multiple of 16 bytes; out: (rows,) int32. Of equal ones the first; never a NaN.

    Raises ValueError for arrays that do not fit together.
    """
    rows, columns = (int(size) for size in x.shape)
    multiple("columns", columns, numbers.wide(kind), "16 bytes at a time")
    array("x", x, (rows, columns), kind)
    array("out", out, (rows,), np.int32)
    if queue.plain:
        return lambda: np.copyto(out, twin(x, kind))
    return queue.prepare(queue.kernel("most_likely", kind), (rows,), THREADS, (x, out, columns), chained=chained)


def twin(x: np.ndarray, kind: str) -> np.ndarray:
    """The kernel in NumPy."""
    values = numbers.decode(x, kind)
    return np.argmax(np.where(np.isnan(values), -np.inf, values), axis=1).astype(np.int32)
