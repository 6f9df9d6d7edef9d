"""One token of each row of logits, drawn by temperature, top-k and top-p, without sorting on the device.

What is left of a row is what `course.lm.sampling` leaves, but for equal logits: at the edge of top-p they are left
together here, and there in the order of ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course.base.settings import quote, whole
from course.gpu.ops import numbers
from course.gpu.ops.queue import MOST_SHARED, Launch, Queue, array, multiple

SLOTS = 2_048
"""Groups of 32 loads that one thread block can add up in order (kernels/sampling.cu)."""
OWN_SHARED = 40 * 1_024
"""Bytes of shared memory that the kernel has beside its share of a row."""
FORMS = {8: (8, 512, 1), 16: (8, 384, 2), 32: (8, 256, 2), 64: (2, 512, 2), 10**9: (1, 1_024, 1)}
"""By most rows: blocks that have a row together, threads of each, and blocks that a multiprocessor should hold. The
fastest of ten on an H200, for top-k with top-p and for top-p alone; few rows leave more of the card to each."""
BITS = 40
"""Chances are whole numbers of 2^-40 of the largest one where candidates are compared."""


def settings(
    rows: int, *, temperature: Any = 1.0, top_k: Any = 0, top_p: Any = 1.0, draws: Any = 0.0, columns: int
) -> np.ndarray:
    """What `prepare` takes of each row, float32 (rows, 4); one number for all rows, or one a row.

    temperature 0 takes the most likely token, the first of equal ones; top_k 0 and top_p 1 leave all. draws: in
    [0, 1). Raises ValueError for a value that is none of these.
    """
    heat = _each("temperature", temperature, rows, "0 or 0.001 to 100", lambda x: (x == 0) | ((x >= 1e-3) & (x <= 100)))
    share = _each("top_p", top_p, rows, "above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
    most = _each("top_k", top_k, rows, "a whole number from 0", lambda x: (x >= 0) & (x < 2**31) & (x == np.floor(x)))
    draw = _each("draws", draws, rows, "at least 0 and below 1", lambda x: (x >= 0) & (x < 1))
    greedy = heat == 0
    found = np.empty((rows, 4), np.float32)
    found[:, 0] = math.log2(math.e) / np.where(greedy, 1, heat)
    found[:, 1] = np.where(greedy, 1, share)
    found[:, 2] = np.where(greedy, 0, np.minimum(draw, 1 - 2.0**-24))
    found[:, 3] = np.where(greedy, 1, np.where(most < columns, most, 0)).astype(np.int32).view(np.float32)
    return found


def _each(name: str, value: Any, rows: int, must: str, fits: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`value` as float64 (rows,). Raises ValueError for one that does not fit."""
    try:
        every = np.broadcast_to(np.asarray(value, np.float64), (rows,))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, or one for each of {rows} rows, not {quote(value)}") from None
    good = fits(every)
    if not good.all():
        raise ValueError(f"{name} must be {must}, not {every[~good][0]:g}")
    return every


def prepare(
    queue: Queue,
    logits: Any,
    settings: Any,
    out: Any,
    how: Any,
    *,
    kind: str = "bf16",
    chained: bool = False,
    cluster: int | None = None,
    threads: int | None = None,
    resident: int | None = None,
) -> Launch:
    """logits: (rows, columns), columns a multiple of 16 bytes; settings: (rows, 4), see `settings`; out, how: (rows,).

    out: the tokens, int32. how: 0 where comparing candidates was enough, else the rounds of the search, int32.
    cluster, threads: blocks that have a row together, and threads of each; what should be fastest by default. resident:
    blocks that a multiprocessor should hold, which bounds the registers.
    Raises ValueError for arrays that do not fit together and for rows that are too long.
    """
    rows, columns = (int(size) for size in logits.shape)
    wide = multiple("columns", columns, numbers.wide(kind), "16 bytes at a time") // numbers.wide(kind)
    array("logits", logits, (rows, columns), kind)
    array("settings", settings, (rows, 4), np.float32)
    array("out", out, (rows,), np.int32)
    array("how", how, (rows,), np.int32)
    if queue.plain:

        def run() -> None:
            out[...], how[...] = twin(logits, settings, kind), 0

        return run
    most = queue.largest_cluster
    best = next(form for up_to, form in FORMS.items() if rows <= up_to) if most >= 8 else (1, 512, 1)
    cluster = best[0] if cluster is None else cluster
    if whole("cluster", cluster, high=16) > most:
        raise ValueError(f"cluster must be at most {most} on {queue.device.name}, not {cluster}")
    threads = multiple("threads", best[1] if threads is None else threads, 32, "whole groups of lanes")
    share = -(-wide // cluster)
    if share > SLOTS * 32:
        raise ValueError(f"columns must be at most {SLOTS * 32 * cluster * numbers.wide(kind):,}, not {columns:,}")
    held = queue.tensor_cores and 16 * share + OWN_SHARED <= MOST_SHARED
    kernel = queue.kernel(
        "sampling",
        kind,
        CLUSTER=cluster,
        THREADS=threads,
        HELD=int(held),
        RESIDENT=resident or (best[2] if threads is None else 1),
    )
    args = (logits, settings, out, how, columns)
    return queue.prepare(
        kernel, (rows * cluster,), threads, args, shared_bytes=16 * share if held else 0, chained=chained
    )


def twin(logits: np.ndarray, settings: np.ndarray, kind: str) -> np.ndarray:
    """The kernel in NumPy: float32 chances as whole numbers, whose sums have no rounding."""
    tokens = np.zeros(len(logits), np.int32)
    lowest = -65_504.0 if kind == "fp16" else float.fromhex("-0x1.fcp127")
    for row, (values, setting) in enumerate(zip(numbers.decode(logits, kind), settings, strict=True)):
        values = np.clip(np.where(np.isnan(values), lowest, values), lowest, -lowest)
        with np.errstate(over="ignore"):
            chances = np.exp2((values - values.max()) * setting[0])
        weights = (chances.astype(np.float64) * 2.0**BITS).astype(np.int64)
        left = np.where(_left(values, weights, setting), weights, 0)
        sums = left.cumsum()
        target = min(int(float(setting[2]) * float(sums[-1])), int(sums[-1]) - 1)
        tokens[row] = np.searchsorted(sums, target, side="right")
    return tokens


def reference(logits: np.ndarray, settings: np.ndarray, kind: str) -> np.ndarray:
    """The chance of each token in float64, (rows, columns), from the numbers as they are stored."""
    found = np.zeros(logits.shape)
    for row, (values, setting) in enumerate(zip(numbers.decode(logits, kind).astype(float), settings, strict=True)):
        chances = np.exp2((values - values.max()) * float(setting[0]))
        left = np.where(_left(values, chances, setting), chances, 0.0)
        found[row] = left / left.sum()
    return found


def _left(values: np.ndarray, weights: np.ndarray, setting: Sequence[Any]) -> np.ndarray:
    """Which numbers of a row top-k, then top-p leave; equal ones together."""
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    first = np.searchsorted(-ordered, -ordered, side="left")  # the first place of those that are equal
    left = np.ones(len(values), bool)
    most, share = int(np.asarray(setting, np.float32)[3:].view(np.int32)[0]), float(setting[1])
    if most:
        left &= first < most
    if share < 1:
        before = np.concatenate([[0], weights[order].cumsum()])
        left &= before[first] < share * before[left.sum()]
    found = np.empty(len(values), bool)
    found[order] = left
    return found
