"""The toy decode step many times in one launch (kernels/decode_loop.cu): a loop of steps that needs no host."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.base.settings import whole
from course.gpu.ops import decode_step
from course.gpu.ops.decode_step import MAX_WORK, checked_threads
from course.gpu.ops.queue import Launch, Queue, array


def prepare(
    queue: Queue,
    out: Any,
    count: Any,
    *,
    work: int,
    steps: int,
    threads: int = 256,
    chained: bool = False,
) -> Launch:
    """Computes the step of `decode_step` for each sequence of `out`, float32 (sequences,), `steps` times.

    count: uint32 (1,); it must be 0 before each launch of more than one step. work, threads: see DecodeStep.

    Raises ValueError for arrays that do not fit, and for more sequences than the device has multiprocessors if they
    have to wait for each other.
    """
    array("out", out, (None,), np.float32)
    sequences = int(out.shape[0])
    array("count", count, (1,), np.uint32)
    work, steps = whole("work", work, high=MAX_WORK), whole("steps", steps, high=1_000_000)
    threads = checked_threads(threads)
    if steps > 1 and sequences > queue.multiprocessors:
        raise ValueError(
            f"{sequences} blocks cannot wait for each other on {queue.multiprocessors} multiprocessors: some would not "
            "have started"
        )
    if queue.plain:
        return lambda: decode_step.twin((sequences, 1, 1), (threads, 1, 1), out, np.int32(work))
    kernel = queue.kernel("decode_loop", "fp32")
    return queue.prepare(
        kernel, (sequences,), threads, (out, count, work, steps), shared_bytes=4 * threads, chained=chained
    )
