"""Kernels on one core of the CPU: their own source, compiled with the fiber shim."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from course.gpu import build, cpu, sources
from course.gpu.cpu import CPUDevice
from course.gpu.device import Kernel
from course.gpu.diagnosis import INTERRUPTED, WROTE_OUTSIDE, Buffer, Report, shim_error
from course.gpu.errors import KernelError
from course.gpu.memory import GuardedArray, Memory, Region, guarded_array

_Sizes = ctypes.c_uint32 * 3
_stacks = (ctypes.c_uint64 * 3)()
"""The stacks that all kernels share: `Stacks` of cpu_launch.h."""
# A launch takes over the signal handlers of the process and the global variables of its library.
_one_at_a_time = threading.Lock()


class ShimKernel(Kernel):
    """A kernel in a library of its own."""

    def __init__(self, name: str, parameters: tuple[sources.Parameter, ...], library: ctypes.CDLL) -> None:
        super().__init__(name, parameters)
        self._launch = library.shim_launch
        self._shared: dict[int, Memory] = {}

    def ready(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], args: tuple, shared_bytes: int
    ) -> Callable[[], None]:
        """See Kernel."""
        values = (ctypes.c_void_p * max(len(args), 1))()
        held: list[Any] = []  # what `values` points to must live as long as it does
        touched: list[tuple[Buffer, Memory]] = []
        copies: list[tuple[np.ndarray, np.ndarray]] = []
        for i, (parameter, arg) in enumerate(zip(self.parameters, args, strict=True)):
            if parameter.pointer:
                array, memory = _in_guarded_memory(arg)
                if array is not arg:
                    copies.append((arg, array))
                touched.append((Buffer(parameter.name, memory.size, array.itemsize), memory))
                held.append(ctypes.c_void_p(array.ctypes.data))
            else:
                held.append(ctypes.create_string_buffer(arg.tobytes()))
            values[i] = ctypes.addressof(held[-1])
        shared = self._shared.get(shared_bytes) or self._shared.setdefault(shared_bytes, Memory(shared_bytes))
        touched.append((Buffer("the shared memory", shared_bytes, 1), shared))
        regions = (Region * len(touched))(*(memory.region for _, memory in touched))
        report = Report()
        sizes = _Sizes(*grid), _Sizes(*block)

        def launch(held: Any = held) -> None:
            for arg, array in copies:
                np.copyto(array, arg)
            with _one_at_a_time:
                self._launch(*sizes, values, regions, len(touched), ctypes.byref(report), _stacks)
                kind = report.kind
            for arg, array in copies:
                if arg.flags.writeable:
                    np.copyto(arg, array)
            if kind:
                self._explain(report, touched)

        return launch

    def _explain(self, report: Report, touched: list[tuple[Buffer, Memory]]) -> None:
        if report.kind == INTERRUPTED:
            raise KeyboardInterrupt
        if report.kind == WROTE_OUTSIDE:
            for _, memory in touched:
                memory.paint()
        raise KernelError(shim_error(self.name, report, [buffer for buffer, _ in touched]))


def _in_guarded_memory(array: np.ndarray) -> tuple[np.ndarray, Memory]:
    memory = array.memory if isinstance(array, GuardedArray) else None
    if memory is not None and memory.holds(array.ctypes.data, array.nbytes):
        return array, memory
    copy = guarded_array(array.shape, array.dtype)
    assert copy.memory is not None
    return copy, copy.memory


class ShimDevice(CPUDevice):
    """One CPU core that runs kernels from their source. Raises KernelError if they cannot be compiled."""

    def __init__(self, notes: tuple[str, ...] = ()) -> None:
        versions = {"compiler": build.compiler().version}
        super().__init__(kind="cpu-shim", name=cpu.name(), notes=notes, versions=versions)
        self.kernel("empty")(1, 1)

    def compile(
        self, source: str, kernel: str, *, file: str = "kernel.cu", macros: Mapping[str, Any] | None = None
    ) -> Kernel:
        """See Device."""
        parameters = sources.parameters(source, kernel)
        return ShimKernel(kernel, parameters, build.load(source, kernel, file, macros or {}))

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        """See Device."""
        return guarded_array(shape, dtype)

    def to_device(self, array: np.ndarray) -> np.ndarray:
        """See Device."""
        copy = guarded_array(array.shape, array.dtype)
        np.copyto(copy, array)
        return copy

    def to_numpy(self, array: Any) -> np.ndarray:
        """See Device."""
        return np.array(array, copy=True, subok=False)
