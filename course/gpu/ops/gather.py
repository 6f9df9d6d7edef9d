"""Rows of a table by their numbers: embeddings of tokens, or the last hidden states of the sequences of a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu.ops import numbers, packing
from course.gpu.ops.queue import Launch, Queue, array, multiple

THREADS = 128


def prepare(
    queue: Queue, table: Any, ids: Any, out: Any, *, groups: int = 0, kind: str = "bf16", chained: bool = False
) -> Launch:
    """out[i] = table[ids[i]]. table: (any, columns). ids: (rows,) int32, inside of the table (not looked at).

    groups: 0, and out is (rows, columns); or out is packed for `skinny_gemm`, with room for 8 x groups rows.
    Raises ValueError for arrays that do not fit together.
    """
    rows, columns = int(ids.shape[0]), int(table.shape[1])
    multiple("columns", columns, 32 if groups else numbers.wide(kind), "16 bytes at a time, packed 32 numbers")
    array("table", table, (None, columns), kind)
    array("ids", ids, (rows,), np.int32)
    if groups and rows > 8 * groups:
        raise ValueError(f"{rows} rows do not fit into {groups} groups of 8")
    array("out", out, packing.shape(groups, columns) if groups else (rows, columns), kind)
    if queue.plain:
        return lambda: twin(table, ids, out, groups)
    grid = (rows, -(-columns // (THREADS * numbers.wide(kind))))
    kernel = queue.kernel("gather", kind, GROUPS=groups)
    return queue.prepare(kernel, grid, THREADS, (table, ids, out, columns), chained=chained)


def twin(table: np.ndarray, ids: np.ndarray, out: np.ndarray, groups: int) -> None:
    """The kernel in NumPy: writes `out`."""
    rows = np.asarray(table)[np.asarray(ids)]
    if groups:
        packing.put_rows(out, rows)
    else:
        out[...] = rows
