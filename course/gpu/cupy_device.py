"""Kernels on a GPU, through CuPy: NVRTC compiles them for CUDA, hiprtc for HIP. The only module that uses CuPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from course.gpu import sources
from course.gpu.device import Device, Kernel, Stopwatch
from course.gpu.diagnosis import compile_error, first_line
from course.gpu.errors import KernelError, while_it_answers
from course.gpu.probe import dotted_version


class CupyKernel(Kernel):
    """A function of a CuPy RawModule, launched on the current stream."""

    def __init__(self, name: str, parameters: tuple[sources.Parameter, ...], function: Any) -> None:
        super().__init__(name, parameters)
        self.function = function

    def ready(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], args: tuple, shared_bytes: int
    ) -> Callable[[], None]:
        """See Kernel."""
        function, name = self.function, self.name

        def launch() -> None:
            with while_it_answers(f"the GPU, with {name} launched,"):
                function(grid, block, args, shared_mem=shared_bytes)

        return launch


class EventStopwatch(Stopwatch):
    """Events of the GPU around each launch; two pairs in turn, so that the gap between two launches is seen too.

    stream: where the launches go, the current one by default. Events on another stream would not wait for them.
    """

    def __init__(self, cupy: ModuleType, name: str = "the GPU", stream: Any = None) -> None:
        self._name, self._stream = name, stream
        self._elapsed = cupy.cuda.get_elapsed_time
        self._pairs = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(2)]
        self._before: Any = None
        self._turn = 0

    def time(self, launch: Callable[[], Any]) -> tuple[float, float]:
        """See Stopwatch."""
        begin, end = self._pairs[self._turn]
        with while_it_answers(self._name):
            begin.record(self._stream)
            launch()
            end.record(self._stream)
            end.synchronize()
            gap = float("nan") if self._before is None else self._elapsed(self._before, begin) / 1_000
            self._before, self._turn = end, 1 - self._turn
            return self._elapsed(begin, end) / 1_000, gap


class CupyDevice(Device):
    """The current GPU of CuPy. Raises KernelError unless the empty kernel compiles, and whatever CuPy raises."""

    def __init__(self, cupy: ModuleType, kind: str, driver: int | None, notes: tuple[str, ...] = ()) -> None:
        self.cupy = cupy
        runtime = cupy.cuda.runtime
        properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
        name = properties["name"]
        versions = {"cupy": cupy.__version__, "runtime": dotted_version(runtime.runtimeGetVersion())}
        if driver is not None:
            versions["driver supports"] = f"CUDA {dotted_version(driver)}"
        architecture = properties.get("gcnArchName", b"") if kind == "hip" else b""
        if architecture:
            versions["architecture"] = architecture.decode(errors="replace").partition("\0")[0]
        super().__init__(kind, name.decode(errors="replace") if isinstance(name, bytes) else str(name), notes, versions)
        place = [properties.get(f"pci{part}ID") for part in ("Domain", "Bus", "Device")]
        self.bus = "" if None in place else "{:08x}:{:02x}:{:02x}.0".format(*place)  # as NVML writes it
        self.kernel("empty")(1, 1)
        cupy.cuda.Stream.null.synchronize()

    def compile(
        self, source: str, kernel: str, *, file: str = "kernel.cu", macros: Mapping[str, Any] | None = None
    ) -> Kernel:
        """See Device."""
        parameters = sources.parameters(source, kernel)
        code = sources.join([*sources.headers(), (file, source)])
        options = ("-std=c++17", *(f"-D{name}={value}" for name, value in (macros or {}).items()))
        try:
            function = self.cupy.RawModule(code=code, options=options, backend="nvrtc").get_function(kernel)
        except Exception as error:
            # By its name, since where CuPy keeps this class has changed more than once.
            if type(error).__name__ == "CompileException":
                raise KernelError(compile_error(file, source, str(error))) from None
            raise KernelError(f"{file} cannot be loaded: {first_line(error)}") from error
        return CupyKernel(kernel, parameters, function)

    def empty(self, shape: Any, dtype: Any) -> Any:
        """See Device."""
        return self.cupy.empty(shape, dtype)

    def to_device(self, array: np.ndarray) -> Any:
        """See Device."""
        with while_it_answers(self.name):
            copy = self.cupy.asarray(array)
            self.cupy.cuda.Stream.null.synchronize()  # other streams do not wait for this one
            return copy

    def to_numpy(self, array: Any) -> np.ndarray:
        """See Device."""
        with while_it_answers(self.name):
            return self.cupy.asnumpy(array)

    def stopwatch(self) -> Stopwatch:
        """See Device."""
        return EventStopwatch(self.cupy, self.name)

    def pace(self, launch: Callable[[], Any], launches: int) -> float:
        """See Device."""
        with while_it_answers(self.name):
            begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            begin.record()
            for _ in range(launches):
                launch()
            end.record()
            end.synchronize()
            return self.cupy.cuda.get_elapsed_time(begin, end) / 1_000 / launches

    def replayed(self, launch: Callable[[], Any], nodes: int = 100, replays: int = 20) -> float:
        """Seconds of one launch among `nodes` of a captured graph: the kernel, without the program that launches it.

        CUDA only. The median of `replays`. Raises KernelError if no graph can be captured.
        """
        if self.kind != "cuda":
            raise KernelError("graphs are replayed on CUDA only: ROCm documents them as unsupported in CuPy")
        stream = self.cupy.cuda.Stream(non_blocking=True)
        with stream:
            launch()
            stream.begin_capture()
            for _ in range(nodes):
                launch()
            graph = stream.end_capture()
            watch = self.stopwatch()
            times = [watch.time(partial(graph.launch, stream))[0] for _ in range(replays + 3)]
        return float(np.median(times[3:])) / nodes
