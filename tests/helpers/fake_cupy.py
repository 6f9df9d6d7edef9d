"""A stand-in for CuPy and for the driver libraries, so that the way to a GPU is tested where there is none.

Its RawModule runs the source with the CPU shim or, without a compiler, with NumPy; its events read the clock.
"""

from __future__ import annotations

import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from course import gpu


class CompileException(Exception):
    """Has the name that CuPy's has."""


class CUDARuntimeError(RuntimeError):
    """Has the name that CuPy's has."""


class Library:
    """A driver library: libcuda or libamdhip64, as far as it is asked."""

    def __init__(self, *, status: int = 0, count: int = 1, version: int = 13_000) -> None:
        self.status, self.count, self.version = status, count, version

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.count
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = self.version
        return 0

    def hipGetDeviceCount(self, count: Any) -> int:
        count._obj.value = self.count
        return self.status


class Event:
    """A point in time."""

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass


class RawModule:
    """Keeps what it was given in `seen`; compiles nothing until a function is asked for."""

    seen: tuple[str, tuple[str, ...], str]

    def __init__(self, *, code: str, options: tuple[str, ...], backend: str) -> None:
        RawModule.seen = (code, options, backend)
        self.code = code
        if "does_not_compile" in code:
            raise CompileException(
                '/tmp/x/kernel.cu\nkernel.cu(2): error: identifier "does_not_compile" is undefined\n'
            )

    def get_function(self, name: str) -> Any:
        device = gpu.device("numpy")
        kernel = device.kernel(name)

        def launch(grid: Any, block: Any, args: Any, shared_mem: int = 0) -> None:
            kernel(grid, block, args, shared_mem)

        return launch


def module(*, hip: bool = False, broken: Exception | None = None) -> ModuleType:
    """The module `cupy`. broken: what every question to the runtime raises."""

    def properties(device: int) -> dict[str, Any]:
        if broken is not None:
            raise broken
        return {"name": b"AMD Pretend" if hip else b"NVIDIA Pretend", "gcnArchName": b"gfx90a:sramecc+\0\0"}

    found = ModuleType("cupy")
    runtime = SimpleNamespace(
        is_hip=hip, getDeviceProperties=properties, runtimeGetVersion=lambda: 13_000, CUDARuntimeError=CUDARuntimeError
    )
    found.cuda = SimpleNamespace(
        runtime=runtime,
        Device=lambda: SimpleNamespace(id=0),
        Stream=SimpleNamespace(null=SimpleNamespace(synchronize=lambda: None)),
        Event=Event,
        get_elapsed_time=lambda begin, end: 1e3 * (end.at - begin.at),
    )
    found.__version__ = "14.2.0"
    found.RawModule = RawModule
    found.empty, found.asarray, found.asnumpy = np.empty, np.array, np.array
    return found
