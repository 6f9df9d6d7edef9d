"""What the back ends have in common: a Device compiles and launches kernels, and a Stopwatch times what it runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from course.base.settings import quote, whole
from course.gpu import sources

MAX_THREADS = 1_024  # a block, on every GPU of the last ten years
MAX_BLOCKS = 2**31 - 1
MAX_SHARED = 48 * 1_024  # bytes a block without asking for more

WORDS = {
    "cuda": "CUDA",
    "hip": "HIP",
    "cpu-shim": "the kernel's source compiled for one CPU core",
    "numpy": "NumPy on one CPU core",
}


class Kernel(ABC):
    """A compiled kernel."""

    def __init__(self, name: str, parameters: Sequence[sources.Parameter]) -> None:
        self.name = name
        self.parameters = tuple(parameters)

    def __call__(self, grid: Any, block: Any, args: Sequence[Any] = (), shared_bytes: int = 0) -> None:
        """Launch once; see `prepare`."""
        self.prepare(grid, block, args, shared_bytes)()

    def prepare(self, grid: Any, block: Any, args: Sequence[Any] = (), shared_bytes: int = 0) -> Callable[[], None]:
        """A launch of `grid` blocks of `block` threads (each a number, or up to three), checked once for many times.

        Checking takes longer than launching, so what is to be timed is prepared first. args: arrays of this device and
        numbers, in the order of the parameters. shared_bytes: size of SHARED.

        Raises ValueError: sizes or arguments that no kernel can be launched with. Raises KernelError: from the launch,
        if it fails, or if the CPU shim catches the kernel at something.
        """
        blocks = _sizes("grid", grid, MAX_BLOCKS)
        threads = _sizes("block", block, MAX_THREADS)
        if math.prod(threads) > MAX_THREADS:
            raise ValueError(f"block = {threads} is {math.prod(threads)} threads: at most {MAX_THREADS} fit into one")
        shared = whole("shared_bytes", shared_bytes, low=0, high=MAX_SHARED)
        return self.ready(blocks, threads, sources.bind(self.name, self.parameters, args), shared)

    @abstractmethod
    def ready(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], args: tuple, shared_bytes: int
    ) -> Callable[[], None]:
        """A launch with sizes and arguments that have been checked."""


def _sizes(name: str, given: Any, high: int) -> tuple[int, int, int]:
    sizes = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{name} has one to three sizes, not {quote(given)}")
    x, y, z = (*(whole(name, size, high=high) for size in sizes), 1, 1)[:3]
    return x, y, z


class Stopwatch(ABC):
    """Times launches one by one."""

    @abstractmethod
    def time(self, launch: Callable[[], Any]) -> tuple[float, float]:
        """Seconds from the beginning to the end of what `launch` runs, and seconds since the end of the one before.

        The second is NaN the first time.
        """


@dataclass(eq=False)
class Device(ABC):
    """Something that runs kernels.

    kind: "cuda", "hip", "cpu-shim" or "numpy". name: of the GPU or CPU. notes: one sentence for each better device
    that could not be used. versions: of drivers and compilers, for reports.
    """

    kind: str
    name: str
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    _kernels: dict[str, Kernel] = field(default_factory=dict, init=False, repr=False)

    @property
    def is_gpu(self) -> bool:
        """Whether this is a GPU."""
        return self.kind in ("cuda", "hip")

    @property
    def badge(self) -> str:
        """Says where numbers of this device come from, in the form that figures and explorers take."""
        return f"measured: just now on this machine, {self.name} ({WORDS[self.kind]})"

    def kernel(self, name: str) -> Kernel:
        """The kernel `name` of the course, from kernels/`name`.cu, compiled once."""
        if name not in self._kernels:
            self._kernels[name] = self.compile(sources.kernel_text(name), name, file=f"{name}.cu")
        return self._kernels[name]

    @abstractmethod
    def compile(
        self, source: str, kernel: str, *, file: str = "kernel.cu", macros: Mapping[str, Any] | None = None
    ) -> Kernel:
        """Compile `kernel` from a source that compat.h and the other headers precede (`sources.HEADERS`).

        macros: names to define, with their values. Raises KernelError with the line of the source that is wrong.
        """

    @abstractmethod
    def empty(self, shape: Any, dtype: Any) -> Any:
        """An array of this device with anything in it."""

    @abstractmethod
    def to_device(self, array: np.ndarray) -> Any:
        """A copy of a NumPy array on this device."""

    @abstractmethod
    def to_numpy(self, array: Any) -> np.ndarray:
        """A copy of an array of this device, once all that was launched before is done."""

    @abstractmethod
    def stopwatch(self) -> Stopwatch:
        """A new stopwatch."""

    @abstractmethod
    def pace(self, launch: Callable[[], Any], launches: int) -> float:
        """Seconds a launch when `launches` of them are queued one behind the other and the end is waited for."""
