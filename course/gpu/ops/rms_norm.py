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


def of_rows(norm: tuple[Any, float] | None, rows: int, instead: Any, kind: str) -> tuple[Any, int, float]:
    """What a kernel takes that norms sums of rows: rows, columns and epsilon, or `instead`, which is not followed.

    Raises ValueError for rows that do not fit.
    """
    if norm is None:
        return instead, 0, 0.0
    x, epsilon = norm
    array("x", x, (rows, None), kind)
    return x, multiple("columns of x", int(x.shape[1]), numbers.wide(kind), "16 bytes at a time"), epsilon


def factors(norm: tuple[Any, float] | None, kind: str) -> np.ndarray:
    """What sums of rows x are multiplied by if the rows count as normed, float32 (rows, 1); ones without `norm`."""
    if norm is None:
        return np.ones((1, 1), np.float32)
    f = numbers.decode(np.asarray(norm[0]), kind)
    return 1 / np.sqrt((f * f).mean(-1, keepdims=True) + np.float32(norm[1]))


def twin(x: np.ndarray, weight: np.ndarray, epsilon: float, kind: str) -> np.ndarray:
    """The kernel in NumPy: float32 inside, rounded once at the end."""
    return numbers.encode(numbers.decode(x, kind) * (factors((x, epsilon), kind) * numbers.decode(weight, kind)), kind)


def reference(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    """The definition, in float64."""
    x = np.asarray(x, dtype=np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * np.asarray(weight, dtype=np.float64)
