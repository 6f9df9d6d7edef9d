"""y = x W^T for any number of rows: by cuBLASLt on CUDA, by NumPy on a CPU. The weights lie as they come, (N, K)."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.errors import KernelError
from course.gpu.ops import numbers
from course.gpu.ops.queue import Launch, Queue, array


def prepare(queue: Queue, x: Any, w: Any, out: Any, *, add: bool = False, kind: str = "bf16") -> Launch:
    """Computes out = x W^T, or out += x W^T with `add`. x: (rows, K), w: (N, K), out: (rows, N). Sums are float32.

    Raises ValueError for arrays that do not fit together, KernelError on a GPU without a library for it.
    """
    (rows, columns), many = (int(size) for size in x.shape), int(w.shape[0])
    array("x", x, (rows, columns), kind)
    array("w", w, (many, columns), kind)
    array("out", out, (rows, many), kind)
    if not queue.device.is_gpu:
        return lambda: np.copyto(out, twin(x, w, kind, out if add else None))
    library = getattr(queue, "blas", None)
    if library is None:
        raise KernelError("products of many rows need cuBLASLt, which exists on CUDA only")
    return library.prepare(x, w, out, add=add, kind=kind)


def twin(x: np.ndarray, w: np.ndarray, kind: str, before: np.ndarray | None = None) -> np.ndarray:
    """The product in NumPy: float32 inside, rounded once at the end."""
    products = numbers.decode(x, kind) @ numbers.decode(w, kind).T
    return numbers.encode(products if before is None else products + numbers.decode(before, kind), kind)
