"""How fast memory can be read: the floor that a kernel's reads are held against."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.base.settings import whole
from course.gpu.ops import fill
from course.gpu.ops.queue import READ_BANDWIDTH, Launch, Queue, array

THREADS = 512
PATTERNS = ("side by side", "a piece each")


def prepare(queue: Queue, data: Any, out: Any, *, pattern: int = 0) -> Launch:
    """Reads `data`, uint32 with a multiple of 4 entries, with as many thread blocks as `out` has entries.

    out: uint32; each block leaves the exclusive or of what it read. pattern: 0, all blocks walk through the buffer
    side by side; 1, each walks through a piece of its own. Raises ValueError for arrays that do not fit.
    """
    array("data", data, (None,), np.uint32)
    array("out", out, (None,), np.uint32)
    whole("pattern", pattern, low=0, high=len(PATTERNS) - 1)
    words = int(data.shape[0])
    if words % 4:
        raise ValueError(f"data has {words} entries of 4 bytes: it is read 16 bytes at a time")
    if queue.plain:
        return lambda: np.copyto(out, np.concatenate([[reference(data)], np.zeros(len(out) - 1, np.uint32)]))
    kernel = queue.kernel("read_probe", WALK=pattern)
    return queue.prepare(kernel, (int(out.shape[0]),), THREADS, (data, words // 4, out))


def bandwidth(queue: Any) -> float:
    """Bytes/s at which a GPU reads 1 GiB, the fastest of a few launches.

    queue: of a GPU. READ_BANDWIDTH if there is no room for the data.
    """
    words = 1 << 28
    try:
        data = queue.device.empty(words, np.uint32)
    except Exception as error:
        if not isinstance(error, MemoryError) and type(error).__name__ != "OutOfMemoryError":  # CuPy's
            raise
        return READ_BANDWIDTH
    fill.prepare(queue, data.view(np.uint16), bound=1.0)()  # zeros are read faster
    found = []
    for blocks in (8, 32, 128):
        launch = prepare(queue, data, queue.device.empty(blocks * queue.multiprocessors, np.uint32))
        found.append(float(np.median(queue.seconds(launch))))
    return 4 * words / min(found)


def reference(data: np.ndarray) -> np.uint32:
    """The exclusive or of all entries: what those of `out` come to."""
    return np.bitwise_xor.reduce(np.asarray(data))
