"""Kernels as NumPy, for machines with neither a GPU nor a compiler: the same float32 arithmetic without the threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from course.gpu import cpu, sources
from course.gpu.cpu import CPUDevice
from course.gpu.device import Kernel
from course.gpu.errors import KernelError

TERMS = 1 << 18  # computed at once: 1 MB, which stays in the cache


def decode_step(grid: tuple[int, int, int], block: tuple[int, int, int], out: np.ndarray, work: np.int32) -> None:
    """kernels/decode_step.cu: the terms of each thread are added in its order, those of the threads by halving."""
    threads, scale, k = block[0], np.float32(1.000173), np.arange(8, dtype=np.float32)
    rows = max(1, TERMS // (8 * threads))
    for sequence in range(grid[0]):
        sums = np.zeros(threads, dtype=np.float32)
        for first in range(0, int(work), rows * threads):
            i = np.arange(first, min(first + rows * threads, int(work)), dtype=np.int32)
            x = scale * (i + 1).astype(np.float32) + np.float32(0.5) * np.float32(sequence)
            terms = np.zeros(-(-len(i) // threads) * threads, dtype=np.float32)
            np.sum(x[:, None] * (x[:, None] + k), axis=1, out=terms[: len(i)])
            sums += terms.reshape(-1, threads).sum(axis=0)
        while len(sums) > 1:
            sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
        out[sequence] = sums[0]


def empty(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    """kernels/empty.cu."""


KERNELS: Mapping[str, Callable[..., None]] = {"decode_step": decode_step, "empty": empty}


class PlainKernel(Kernel):
    """A kernel as a Python function."""

    def ready(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], args: tuple, shared_bytes: int
    ) -> Callable[[], None]:
        """See Kernel."""
        return partial(KERNELS[self.name], grid, block, *args)


class PlainDevice(CPUDevice):
    """One CPU core and NumPy: runs the kernels that the course brings, and no others."""

    def __init__(self, notes: tuple[str, ...] = ()) -> None:
        super().__init__(kind="numpy", name=cpu.name(), notes=notes, versions={"numpy": np.__version__})

    def compile(
        self, source: str, kernel: str, *, file: str = "kernel.cu", macros: Mapping[str, Any] | None = None
    ) -> Kernel:
        """See Device. Raises KernelError for a source that has no twin in NumPy."""
        if kernel not in KERNELS or source != sources.text(f"{kernel}.cu"):
            raise KernelError(
                f"{kernel} cannot run here: a kernel from source needs a GPU with CuPy, or a C++ compiler"
            )
        return PlainKernel(kernel, sources.parameters(source, kernel))

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        """See Device."""
        return np.empty(shape, dtype)

    def to_device(self, array: np.ndarray) -> np.ndarray:
        """See Device."""
        return np.array(array, copy=True)

    def to_numpy(self, array: Any) -> np.ndarray:
        """See Device."""
        return np.array(array, copy=True)
