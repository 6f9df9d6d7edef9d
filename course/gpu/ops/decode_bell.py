"""The toy decode step by a kernel that stays on the card and waits for a bell in memory that the program sees, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.base.settings import whole
from course.gpu.errors import KernelError
from course.gpu.ops import decode_step
from course.gpu.ops.decode_step import MAX_WORK, checked_threads
from course.gpu.ops.queue import Queue

PATIENCE = 20_000_000
"""Looks at the bell before the kernel gives up: some ten seconds, so that a program that died leaves no card busy."""
GAVE_UP = 0xFFFFFFFF


class Bell:
    """The step of `decode_step` for `sequences`, each time that somebody rings, up to `steps` times after `start`.

    work, threads: see DecodeStep. Raises ValueError for more sequences than the device has multiprocessors, since all
    wait at once. Where the device has no memory of its own, a ring computes the step at once.
    """

    def __init__(self, queue: Queue, *, sequences: int, work: int, steps: int, threads: int = 256) -> None:
        self.queue, self.sequences = queue, whole("sequences", sequences)
        self.work, self.steps = whole("work", work, high=MAX_WORK), whole("steps", steps, high=1_000_000)
        self.threads = checked_threads(threads)
        if _waits(queue) and sequences > queue.multiprocessors:
            raise ValueError(
                f"{sequences} blocks cannot wait at once on {queue.multiprocessors} multiprocessors: some would not "
                "have started"
            )
        self._rung, rung = _seen_by_both(queue, 1, np.uint32)
        self._answered, answered = _seen_by_both(queue, 1, np.uint32)
        self._out, out = _seen_by_both(queue, self.sequences, np.float32)
        self._state = queue.device.to_device(np.zeros(2, np.uint32))
        self._launch: Any = None
        if not queue.plain:
            kernel = queue.kernel("decode_bell", "fp32")
            steps = self.steps if _waits(queue) else 1
            args = (out, rung, answered, self._state, self.work, steps, PATIENCE)
            self._launch = queue.prepare(kernel, (self.sequences,), self.threads, args, shared_bytes=4 * self.threads)
        self._left = 0

    def start(self) -> None:
        """Launch the kernel, which waits from now on."""
        self._rung[0] = self._answered[0] = 0
        self.queue.write(self._state, np.zeros(2, np.uint32))
        self._left = self.steps
        if _waits(self.queue):
            self._launch()

    def ring(self) -> np.ndarray:
        """Ring, and wait for the tokens, float32 (sequences,), which the next ring overwrites.

        Raises ValueError when the kernel has ended, KernelError if it has given up.
        """
        if not self._left:
            raise ValueError(f"the kernel waits for {self.steps} steps after start(): start it again")
        self._left -= 1
        wanted = self._rung[0] + 1
        self._rung[0] = wanted
        if not _waits(self.queue):
            self._compute(wanted)
        answered = self._answered
        while answered[0] != wanted:
            if answered[0] == GAVE_UP:
                raise KernelError("decode_bell was not rung in time and has ended: start it again")
        return self._out

    def _compute(self, wanted: Any) -> None:
        """Without a kernel that waits: one launch a ring."""
        if self._launch is None:
            decode_step.twin((self.sequences, 1, 1), (self.threads, 1, 1), self._out, np.int32(self.work))
        else:
            self._rung[0] = 1
            self._state[...] = 0
            self._launch()
        self._rung[0] = self._answered[0] = wanted

    def stop(self) -> None:
        """Let a kernel that still waits end: ring for all steps that are left."""
        while self._left:
            self.ring()
        self.queue.wait()


def _waits(queue: Queue) -> bool:
    return queue.device.kind in ("cuda", "hip")


def _seen_by_both(queue: Queue, count: int, dtype: Any) -> tuple[np.ndarray, Any]:
    """Pinned memory of the host: as NumPy sees it, and as the device does."""
    if not _waits(queue):
        array = queue.device.to_device(np.zeros(count, dtype))
        return array, array
    cupy, size = queue.cupy, count * np.dtype(dtype).itemsize  # type: ignore[attr-defined]
    memory = cupy.cuda.alloc_pinned_memory(size)
    here = np.frombuffer(memory, dtype, count)
    here[:] = 0
    device = cupy.cuda.Device().id
    there = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(memory.ptr, size, memory, device), 0)
    return here, cupy.ndarray((count,), dtype, there)
