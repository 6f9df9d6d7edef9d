"""A stream of a GPU: launches that may overlap (programmatic dependent launch), and graphs.

CuPy launches kernels without launch attributes, so on CUDA this goes to the driver itself, through ctypes; CuPy keeps
the memory, the streams and the graphs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from course.gpu.cublaslt import CublasLt
from course.gpu.cupy_device import CupyDevice, CupyKernel, EventStopwatch
from course.gpu.device import Kernel, Stopwatch
from course.gpu.errors import KernelError, while_it_answers
from course.gpu.ops import read_probe
from course.gpu.ops.queue import Launch, Queue

SERIALIZATION = 6
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION of the driver's header."""
LARGE_CLUSTERS = 14
"""CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED."""
SHARED_WITHOUT_ASKING = 48 * 1_024
_read_bandwidths: dict[int, float] = {}


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint64 * 8))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


class Graph:
    """Launches captured once and replayed as a whole."""

    def __init__(self, graph: Any, queue: CupyQueue, held: Any) -> None:
        self._graph, self._queue, self._held = graph, queue, held  # a graph holds no buffers: keep what has them

    def __call__(self) -> None:
        """Replay."""
        with while_it_answers(self._queue.device.name):
            self._graph.launch(self._queue.stream)


class CupyQueue(Queue):
    """A stream of CuPy, on CUDA or HIP."""

    def __init__(self, device: CupyDevice) -> None:
        super().__init__(device)
        self.cupy = device.cupy
        self.stream = device.cupy.cuda.Stream(non_blocking=True)
        properties = device.cupy.cuda.runtime.getDeviceProperties(device.cupy.cuda.Device().id)
        self._multiprocessors = int(properties["multiProcessorCount"])

    @property
    def multiprocessors(self) -> int:
        """See Queue."""
        return self._multiprocessors

    @property
    def read_bandwidth(self) -> float:
        """See Queue. The first queue of a card measures it, in some milliseconds."""
        card = int(self.cupy.cuda.Device().id)
        if card not in _read_bandwidths:
            _read_bandwidths[card] = read_probe.bandwidth(self)
        return _read_bandwidths[card]

    def ready(self, kernel: Kernel, grid: tuple, block: tuple, args: tuple, shared: int, chained: bool) -> Launch:
        """See Queue."""
        launch = kernel.ready(grid, block, args, shared)

        def on_stream() -> None:
            with self.stream:
                launch()

        return on_stream

    def write(self, array: Any, values: np.ndarray) -> None:
        """See Queue."""
        with while_it_answers(self.device.name):
            array.set(np.ascontiguousarray(values, dtype=array.dtype), stream=self.stream)

    def here(self) -> AbstractContextManager:
        """See Queue."""
        return self.stream

    def wait(self) -> None:
        """See Queue."""
        with while_it_answers(self.device.name):
            self.stream.synchronize()
            self.cupy.cuda.Stream.null.synchronize()  # where CuPy's own operations go

    def stopwatch(self) -> Stopwatch:
        """See Queue."""
        return EventStopwatch(self.cupy, self.device.name, self.stream)

    def seconds(self, launch: Callable[[], Any], repeats: int = 5, warm: int = 2) -> np.ndarray:
        """Seconds of each of `repeats` runs of `launch` on this stream, by events around each."""
        times = []
        with while_it_answers(self.device.name):
            for _ in range(warm):
                launch()
            begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            for _ in range(repeats):
                begin.record(self.stream)
                launch()
                end.record(self.stream)
                end.synchronize()
                times.append(self.cupy.cuda.get_elapsed_time(begin, end) / 1e3)
        return np.array(times)


class CudaQueue(CupyQueue):
    """A stream on CUDA. Raises KernelError if the driver's library cannot be called."""

    captures = True

    def __init__(self, device: CupyDevice) -> None:
        super().__init__(device)
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise KernelError(f"the driver's library libcuda.so.1 cannot be loaded: {error}") from None
        self.capability = int(str(device.cupy.cuda.Device().compute_capability)[:-1])  # "90" is 9.0
        self.blas = CublasLt(self)

    @property
    def tensor_cores(self) -> bool:
        """See Queue."""
        return self.capability >= 8

    @property
    def largest_cluster(self) -> int:
        """See Queue. More than 8 blocks have to be allowed for each kernel, and on some cards do not fit."""
        return {9: 16, 10: 16}.get(self.capability, 8) if self.capability >= 9 else 1

    def kernel(self, name: str, kind: str = "bf16", **macros: int) -> Kernel:
        """See Queue."""
        kernel = super().kernel(name, kind, **macros)
        if macros.get("CLUSTER", 1) > 8:
            assert isinstance(kernel, CupyKernel)
            handle = ctypes.c_void_p(kernel.function.kernel.ptr)
            status = self._driver.cuFuncSetAttribute(handle, LARGE_CLUSTERS, 1)
            if status:
                raise KernelError(f"{name} in clusters of {macros['CLUSTER']} blocks: {self._why(status)}")
        return kernel

    def ready(self, kernel: Kernel, grid: tuple, block: tuple, args: tuple, shared: int, chained: bool) -> Launch:
        """See Queue."""
        assert isinstance(kernel, CupyKernel)
        function = kernel.function
        if shared + function.shared_size_bytes > SHARED_WITHOUT_ASKING:  # with what the source declares itself
            try:
                function.max_dynamic_shared_size_bytes = shared
            except Exception as error:
                raise KernelError(f"{kernel.name} needs {shared} bytes of shared memory per block: {error}") from None
        values: list[Any] = []
        for parameter, arg in zip(kernel.parameters, args, strict=True):
            if parameter.pointer:
                values.append(ctypes.c_uint64(arg.data.ptr))
            else:
                values.append(ctypes.create_string_buffer(arg.tobytes(), arg.nbytes))
        pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
        early = chained and self.capability >= 9  # older cards refuse the attribute, and run one after the other
        attribute = _Attribute(SERIALIZATION, 0, (1,) + (0,) * 7)
        config = _Config(grid, block, shared, self.stream.ptr, ctypes.addressof(attribute), int(early))
        call, handle, name = self._driver.cuLaunchKernelEx, ctypes.c_void_p(function.kernel.ptr), kernel.name
        by_reference = ctypes.byref(config)

        def launch(held: Any = (values, attribute, args, kernel)) -> None:
            status = call(by_reference, handle, pointers, None)
            if status:
                raise KernelError(f"{name} could not be launched: {self._why(status)}")

        return launch

    def _why(self, status: int) -> str:
        text = ctypes.c_char_p()
        self._driver.cuGetErrorString(status, ctypes.byref(text))
        return (text.value or b"unknown error").decode() + f" (CUDA driver error {status})"

    def captured(self, launches: Sequence[Launch], held: Any = None) -> Graph:
        """See Queue. The launches were prepared on this queue."""
        with self.stream:
            self.stream.begin_capture()
            try:
                for one in launches:
                    one()
            except Exception:
                self.stream.end_capture()
                raise
            graph = self.stream.end_capture()
        return Graph(graph, self, (list(launches), held))
