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
from course.gpu.ops import decode_step, empty

TWINS: Mapping[str, Callable[..., None]] = {"decode_step": decode_step.twin, "empty": empty.twin}


class PlainKernel(Kernel):
    """A kernel as a Python function."""

    def ready(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], args: tuple, shared_bytes: int
    ) -> Callable[[], None]:
        """See Kernel."""
        return partial(TWINS[self.name], grid, block, *args)


class PlainDevice(CPUDevice):
    """One CPU core and NumPy: runs the kernels that the course brings, and no others."""

    def __init__(self, notes: tuple[str, ...] = ()) -> None:
        super().__init__(kind="numpy", name=cpu.name(), notes=notes, versions={"numpy": np.__version__})

    def compile(
        self, source: str, kernel: str, *, file: str = "kernel.cu", macros: Mapping[str, Any] | None = None
    ) -> Kernel:
        """See Device. Raises KernelError for a source that has no twin in NumPy."""
        if kernel not in TWINS or source != sources.kernel_text(kernel):
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
