"""y = x W^T for up to 64 rows with packed weights: x is shared by many columns, K by the blocks of a cluster."""

from __future__ import annotations

from typing import Any

from course.base.settings import whole
from course.gpu.ops import skinny_gemm
from course.gpu.ops.queue import MOST_SHARED, Launch, Queue
from course.gpu.ops.skinny_gemm import FINISHES, Heads

MOST_ROWS = 64
FEWEST_ROWS, FINISHES_OF_MANY = 25, ("silu", "rows")
"""With fewer rows, or where W has few, this is no faster than `skinny_gemm`; with more than 32 cuBLASLt is faster."""
MOST_GROUPS_PLAIN = 4
"""Groups of 8 rows whose sums a thread has registers for without tensor cores."""
MOST_CLUSTER = 8
"""Blocks of a cluster that every card of compute capability 9.0 has room for."""


def faster(queue: Queue, rows: int, finish: str) -> bool:
    """Whether this is faster than `skinny_gemm` for such a product, as measured on an H200."""
    fits = rows <= skinny_gemm.MOST_ROWS and queue.tensor_cores and queue.merging_cluster > 1
    return fits and rows >= FEWEST_ROWS and finish in FINISHES_OF_MANY


def shared_bytes(groups: int, warps: int, pieces: int, stages: int) -> int:
    """Shared memory of a block: its ring of x, which becomes the room for its sums."""
    return max(16 * stages * pieces * groups * 32, 4 * 8 * groups * (16 * warps + 4))


def prepare(
    queue: Queue,
    x: Any,
    w: Any,
    out: Any,
    rows: int,
    *,
    finish: str = "rows",
    norm: float | None = None,
    heads: Heads | None = None,
    squares: Any = None,
    kind: str = "bf16",
    cluster: int | None = None,
    warps: int | None = None,
    pieces: int | None = None,
    stages: int = 3,
    resident: int = 2,
    tensor: bool | None = None,
    chained: bool = False,
) -> Launch:
    """One product as `skinny_gemm.prepare` has it, for up to 64 rows.

    cluster: blocks that share K. warps: tiles of 16 columns a block. pieces: times 32 columns of x that are fetched
    together, stages: such that are under way. resident: blocks a multiprocessor. None: as `variant` says.

    tensor: with tensor cores or without, which is for 32 rows at most; None: with them where there are any.

    Raises ValueError for arrays that do not fit together, and for what the kernel has no form of or the device no
    cluster.
    """
    args = skinny_gemm.arguments(
        queue, x, w, out, rows, finish=finish, norm=norm, heads=heads, squares=squares, kind=kind, most=MOST_ROWS
    )
    if squares is not None and norm is None:
        raise ValueError("squares are left by skinny_gemm only")
    if queue.plain:
        return lambda: skinny_gemm.twin(x, w, out, rows, finish=finish, norm=norm, heads=heads, kind=kind)
    groups, tiles, columns = int(x.shape[1]), int(w.shape[0]), 32 * int(x.shape[0])
    best = variant(queue, groups, tiles, columns)
    cluster = whole("cluster", cluster or best[0], high=MOST_CLUSTER)
    warps = whole("warps", warps or best[1], high=16)
    pieces = whole("pieces", pieces or best[2], high=16)
    stages = whole("stages", stages, low=2, high=8)
    tensor = queue.tensor_cores if tensor is None else tensor
    if not tensor and groups > MOST_GROUPS_PLAIN:
        raise ValueError(f"{rows} rows: the form without tensor cores takes {8 * MOST_GROUPS_PLAIN} at most")
    if cluster > queue.merging_cluster:
        raise ValueError(f"{cluster} blocks cannot be a cluster here: the largest has {queue.merging_cluster}")
    if columns % (32 * pieces):
        raise ValueError(f"K = {columns} is not a multiple of 32 x pieces {pieces}")
    shared = shared_bytes(groups, warps, pieces, stages)
    if shared > MOST_SHARED:
        raise ValueError(
            f"{stages} stages of {pieces} pieces need {shared} bytes of shared memory: {MOST_SHARED} at most"
        )
    macros = {"GROUPS": groups, "WARPS": warps, "PIECES": pieces, "STAGES": stages, "RESIDENT": resident}
    macros |= {"NORM": int(norm is not None), "FINISH": FINISHES[finish], "TENSOR": int(tensor)}
    macros |= {"CLUSTER": cluster} if cluster > 1 else {}
    macros |= {} if squares is None else {"SQUARES": 1}
    macros |= skinny_gemm.of_heads(out, heads)
    grid = -(-tiles // warps) * cluster
    kernel = queue.kernel("split_gemm", kind, **macros)
    return queue.prepare(kernel, (grid,), 32 * warps, args, shared_bytes=shared, chained=chained)


def variant(queue: Queue, groups: int, tiles: int, columns: int) -> tuple[int, int, int]:
    """(blocks of a cluster, warps, pieces) so that about two blocks a multiprocessor share the work evenly."""
    warps = 8
    pieces = next(size for size in (4, 2, 1) if (columns // 32) % size == 0)
    places, blocks = 2 * queue.multiprocessors, -(-tiles // warps)
    most = max(1, min(MOST_CLUSTER, queue.merging_cluster, columns // (32 * pieces), places // blocks))
    return 2 ** (most.bit_length() - 1), warps, pieces  # five blocks do not share a part of the chip evenly
