"""RMSNorm of rows: y = x / sqrt(mean(x^2) + epsilon) * weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import numbers
from course.gpu.ops.queue import Launch, Queue, array, multiple

THREADS = 256


def prepare(
    queue: Queue, x: Any, weight: Any, out: Any, *, epsilon: float, kind: str = "bf16", chained: bool = False
) -> Launch:
    """`out` = norm of the rows of `x`. Shapes (rows, columns), weight (columns,); columns a multiple of 16 bytes.

    Raises ValueError for arrays that do not fit together.
    """
    rows, columns = (int(size) for size in x.shape)
    multiple("columns", columns, numbers.wide(kind), "16 bytes at a time")
    array("x", x, (rows, columns), kind)
    array("weight", weight, (columns,), kind)
    array("out", out, (rows, columns), kind)
    if queue.plain:
        return lambda: np.copyto(out, twin(x, weight, epsilon, kind))
    kernel = queue.kernel("rms_norm", kind)
    return queue.prepare(kernel, (rows,), THREADS, (x, weight, out, columns, epsilon), chained=chained)


def twin(x: np.ndarray, weight: np.ndarray, epsilon: float, kind: str) -> np.ndarray:
    """The kernel in NumPy: float32 inside, rounded once at the end."""
    f = numbers.decode(x, kind)
    scale = 1 / np.sqrt((f * f).mean(-1, keepdims=True) + np.float32(epsilon))
    return numbers.encode(f * (scale * numbers.decode(weight, kind)), kind)


def reference(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    """The definition, in float64."""
    x = np.asarray(x, dtype=np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * np.asarray(weight, dtype=np.float64)
