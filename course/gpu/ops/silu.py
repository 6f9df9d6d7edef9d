"""The gate of Llama's MLP: silu(gate) * up, silu(x) = x / (1 + exp(-x))."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import numbers, rms_norm
from course.gpu.ops.queue import Launch, Queue, array, multiple

THREADS = 256


def prepare(
    queue: Queue,
    gate_up: Any,
    out: Any,
    *,
    norm: tuple[Any, float] | None = None,
    kind: str = "bf16",
    chained: bool = False,
) -> Launch:
    """gate_up: (rows, 2 x columns), the gates first; out: (rows, columns), columns a multiple of 16 bytes.

    norm: x (rows, hidden) and epsilon, if gate_up are products of x and count as those of its RMSNorm without a weight;
    nothing that this launch may overlap with writes x. Raises ValueError for arrays that do not fit together.
    """
    rows, columns = (int(size) for size in out.shape)
    multiple("columns", columns, numbers.wide(kind), "16 bytes at a time")
    array("out", out, (rows, columns), kind)
    array("gate_up", gate_up, (rows, 2 * columns), kind)
    of_rows = rms_norm.of_rows(norm, rows, gate_up, kind)
    if queue.plain:
        return lambda: np.copyto(out, twin(gate_up, kind, norm))
    grid = (rows, -(-columns // (THREADS * numbers.wide(kind))))
    kernel = queue.kernel("silu", kind, **({"NORM": 1} if norm else {}))
    args = (gate_up, out, columns, *of_rows)
    return queue.prepare(kernel, grid, THREADS, args, chained=chained)


def twin(gate_up: np.ndarray, kind: str, norm: tuple[np.ndarray, float] | None = None) -> np.ndarray:
    """The kernel in NumPy: float32 inside, rounded once at the end."""
    gate, up = np.split(numbers.decode(gate_up, kind) * rms_norm.factors(norm, kind), 2, axis=-1)
    with np.errstate(over="ignore"):
        return numbers.encode(gate / (1 + np.exp(-gate)) * up, kind)


def reference(gate_up: np.ndarray) -> np.ndarray:
    """The definition, in float64."""
    gate, up = np.split(np.asarray(gate_up, dtype=np.float64), 2, axis=-1)
    return gate / (1 + np.exp(-gate)) * up
