"""Memory for the CPU shim: buffers that end where a page without access begins."""

from __future__ import annotations

import ctypes
import math
import mmap
from typing import Any

import numpy as np

GUARD = 1 << 22
"""Bytes before and behind a buffer that fault when touched. They are addresses only and take no memory."""
PATTERN = 0xA5
ALIGNMENT = 16


class Region(ctypes.Structure):
    """A buffer as cpu_guard.h knows it: [low, begin) and [end, high) hold the pattern."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("low", "begin", "end", "high"))


class Memory:
    """Guarded memory of `size` bytes. Raises MemoryError if the system gives none."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        pages = max(page, math.ceil(size / page) * page)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        try:
            self.map = mmap.mmap(-1, GUARD + pages + GUARD, flags=flags)
        except OSError as error:
            raise MemoryError(f"no memory for a buffer of {size:,} bytes: {error}") from None
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        libc = ctypes.CDLL(None, use_errno=True)
        for start in (base, base + GUARD + pages):
            if libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(GUARD), 0):
                raise MemoryError(f"no guard pages around a buffer of {size:,} bytes: error {ctypes.get_errno()}")
        self.offset = GUARD + pages - math.ceil(size / ALIGNMENT) * ALIGNMENT
        self.size = size
        begin = base + self.offset
        self.region = Region(base + GUARD, begin, begin + size, base + GUARD + pages)
        self.paint()

    def paint(self) -> None:
        """Write the pattern around the buffer; again after a launch has spoilt it."""
        region = self.region
        ctypes.memset(region.low, PATTERN, region.begin - region.low)
        ctypes.memset(region.end, PATTERN, region.high - region.end)

    def holds(self, address: int, size: int) -> bool:
        """Whether these bytes are inside of the buffer."""
        return self.region.begin <= address and address + size <= self.region.end


class GuardedArray(np.ndarray):
    """A NumPy array that knows its memory; arrays computed from it do not live there, and `holds` tells."""

    memory: Memory | None = None

    def __array_finalize__(self, parent: Any) -> None:
        self.memory = getattr(parent, "memory", None)


def guarded_array(shape: Any, dtype: Any) -> GuardedArray:
    """A new array in guarded memory, with anything in it."""
    kind = np.dtype(dtype)
    shape = tuple(shape) if isinstance(shape, tuple | list) else (int(shape),)
    count = math.prod(shape)
    memory = Memory(count * kind.itemsize)
    array = np.frombuffer(memory.map, kind, count, memory.offset).reshape(shape).view(GuardedArray)
    array.memory = memory
    return array
