"""Where launches go: one after the other on a device, and on CUDA a stream that can be captured as a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from course.base.settings import quote, whole
from course.gpu import sources
from course.gpu.device import Device, Kernel, Stopwatch
from course.gpu.errors import KernelError
from course.gpu.ops import numbers

Launch = Callable[[], None]
READ_BANDWIDTH = 3.0e12
"""Bytes/s of an H100, for devices on which it is not measured."""
MOST_SHARED = 227 * 1_024
"""Bytes of shared memory a block may ask for on an H100; a card that has less says so when asked."""


class Queue:
    """Launches on a device that runs them at once: a CPU. `queue(device)` makes the right one."""

    captures = False

    def __init__(self, device: Device) -> None:
        self.device = device
        self._kernels: dict[tuple, Kernel] = {}
        self._nothing: dict[Any, Any] = {}

    @property
    def plain(self) -> bool:
        """Whether operations run as NumPy, since there is no compiler."""
        return self.device.kind == "numpy"

    @property
    def tensor_cores(self) -> bool:
        """Whether kernels may be compiled with -DTENSOR=1. The CPU shim computes what a tensor core would."""
        return self.device.kind == "cpu-shim"

    @property
    def multiprocessors(self) -> int:
        """Thread blocks that the device works on at a time, if each takes a multiprocessor of its own."""
        return 1

    @property
    def largest_cluster(self) -> int:
        """Thread blocks that may join as a cluster and store into each other's shared memory; 1 where none can."""
        return 1

    @property
    def merging_cluster(self) -> int:
        """Blocks of a cluster that adds up at its end only: the CPU shim has those too, one block after the other."""
        return 16 if self.device.kind == "cpu-shim" else self.largest_cluster

    @property
    def read_bandwidth(self) -> float:
        """Bytes/s at which the device reads its memory, to plan work by; measured once if it is a GPU."""
        return READ_BANDWIDTH

    def nothing(self, dtype: Any) -> Any:
        """An array of one number, for a pointer that is not followed."""
        if dtype not in self._nothing:
            self._nothing[dtype] = self.device.to_device(np.zeros(1, dtype))
        return self._nothing[dtype]

    def kernel(self, name: str, kind: str = "bf16", **macros: int) -> Kernel:
        """kernels/`name`.cu compiled for numbers of `kind` with these macros, once."""
        macros = {"ELEMENT": numbers.KINDS.index(numbers.checked_kind(kind)), **macros}
        key = (name, *sorted(macros.items()))
        if key not in self._kernels:
            text = sources.kernel_text(name)
            self._kernels[key] = self.device.compile(text, name, file=f"{name}.cu", macros=macros)
        return self._kernels[key]

    def prepare(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        threads: int,
        args: Sequence[Any],
        *,
        shared_bytes: int = 0,
        chained: bool = False,
    ) -> Launch:
        """A launch that is checked now and made as often as it is called.

        chained: it may start while the launch before it drains (programmatic dependent launch), if the device can.
        """
        sizes = (*(whole("grid", size, high=2**31 - 1) for size in grid), 1, 1)[:3]
        shared = whole("shared_bytes", shared_bytes, low=0, high=MOST_SHARED)
        bound = sources.bind(kernel.name, kernel.parameters, args)
        return self.ready(kernel, sizes, (whole("threads", threads, high=1_024), 1, 1), bound, shared, chained)

    def ready(self, kernel: Kernel, grid: tuple, block: tuple, args: tuple, shared: int, chained: bool) -> Launch:
        """A launch whose arguments have been checked."""
        return kernel.ready(grid, block, args, shared)

    def captured(self, launches: Sequence[Launch], held: Any = None) -> Launch:
        """These launches as one: a graph, if the queue can capture one. held: what must live as long.

        Raises KernelError if one of them cannot be captured.
        """
        launches = list(launches)

        def one_by_one(held: Any = held) -> None:
            for launch in launches:
                launch()

        return one_by_one

    def write(self, array: Any, values: np.ndarray) -> None:
        """Copy numbers from NumPy into an array of the device, before what is launched next."""
        array[...] = values

    def here(self) -> AbstractContextManager:
        """A context in which operations on arrays run after the launches of this queue."""
        return nullcontext()

    def wait(self) -> None:
        """Wait until all that was launched is done."""

    def stopwatch(self) -> Stopwatch:
        """A stopwatch for launches of this queue; one of the device does not see them on a GPU."""
        return self.device.stopwatch()


def array(name: str, value: Any, shape: Sequence[int | None], kind: Any) -> Any:
    """`value` itself if it has this shape (None: any size) and kind and no gaps; else ValueError with what it has."""
    expected_dtype = numbers.dtype(kind) if isinstance(kind, str) else np.dtype(kind)
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "flags"):
        raise ValueError(f"{name} must be an array of the device, not {quote(value)}")
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    fits = len(value.shape) == len(shape) and all(
        size is None or size == given for size, given in zip(shape, value.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"{name} must have the shape ({sizes}), not {tuple(value.shape)}")
    if dtype != expected_dtype:
        raise ValueError(
            f"{name} must hold {kind if isinstance(kind, str) else expected_dtype} as {expected_dtype}, not {dtype}"
        )
    if not value.flags.c_contiguous:
        raise ValueError(f"{name} must be contiguous in memory: pass a copy")
    return value


def multiple(name: str, value: Any, of: int, why: str) -> int:
    """`value` as an int; ValueError unless it is a positive multiple of `of`."""
    number = whole(name, value)
    if number % of:
        raise ValueError(f"{name} must be a multiple of {of} ({why}), not {number}")
    return number


def out_of_memory(error: Exception, size: int, what: str) -> KernelError:
    """A sentence for a device without room for `what`."""
    return KernelError(f"{what} need {size / 1e9:.1f} GB of GPU memory, which the card does not have free: {error}")
