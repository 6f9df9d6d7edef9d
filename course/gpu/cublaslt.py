"""Products by cuBLASLt, called past CuPy, whose own cuBLAS calls cannot be captured into a graph.

The names of constants are those of NVIDIA's header cublasLt.h.
"""

from __future__ import annotations

import ctypes
import glob
import importlib.util
from functools import cache
from typing import Any

import numpy as np

from course.gpu.errors import KernelError

CudaQueue = Any  # course.gpu.cuda.CudaQueue, which stands above

CUDA_TYPES = {"bf16": 14, "fp16": 2, "fp32": 0}
COMPUTE_32F = 68  # sums in float32, and no TF32 for float32 inputs
TRANSA = 3
MAX_WORKSPACE_BYTES = 1
WORKSPACE = 64 << 20
FLUSH = 128 << 20  # bytes: more than the second cache of any card
RESULT_BYTES, ALGO_BYTES = 96, 64
FINALISTS, TRIALS = 3, 12


@cache
def library() -> ctypes.CDLL:
    """LibcublasLt of NVIDIA's pip packages or of a toolkit. Raises KernelError if there is none."""
    names = []
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        names += sorted(glob.glob(f"{folder}/**/libcublasLt.so.*", recursive=True))
    for name in [*names, "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise KernelError("libcublasLt is missing: `pip install nvidia-cublas` installs it")


class CublasLt:
    """Products on the stream of a queue; plans of one shape are made and timed once."""

    def __init__(self, queue: CudaQueue) -> None:
        self.queue = queue
        self._handle: ctypes.c_void_p | None = None
        self._plans: dict[tuple, _Plan] = {}

    def prepare(self, x: Any, w: Any, out: Any, *, add: bool, kind: str) -> Any:
        """Prepare out (rows, N) = x (rows, K) w^T, or += ; row-major: the column-major library computes w x^T."""
        self._start()
        (rows, columns), many = x.shape, w.shape[0]
        key = (int(rows), int(many), int(columns), add, kind)
        if key not in self._plans:
            self._plans[key] = _Plan(self, *key, x, w)
        plan = self._plans[key]
        return plan.launch(x, w, out, plan.algo)

    def _start(self) -> None:
        if self._handle is not None:
            return
        self.lt = library()
        handle = ctypes.c_void_p()
        _check(self.lt.cublasLtCreate(ctypes.byref(handle)), "cublasLtCreate")
        self._handle = handle
        self.workspace = self.queue.cupy.empty(WORKSPACE, np.uint8)
        self.flush = self.queue.cupy.empty(FLUSH, np.uint8)


class _Plan:
    """How products of one shape are computed: of what the library suggests, what is fastest here."""

    def __init__(
        self, blas: CublasLt, rows: int, many: int, columns: int, add: bool, kind: str, x: Any, w: Any
    ) -> None:
        self.blas, self.add, self.kind = blas, add, CUDA_TYPES[kind]
        lt = blas.lt
        self.one, self.beta = ctypes.c_float(1), ctypes.c_float(float(add))
        self.desc = ctypes.c_void_p()
        _check(lt.cublasLtMatmulDescCreate(ctypes.byref(self.desc), COMPUTE_32F, 0), "cublasLtMatmulDescCreate")
        turned = ctypes.c_int(1)
        _check(
            lt.cublasLtMatmulDescSetAttribute(self.desc, TRANSA, ctypes.byref(turned), ctypes.c_size_t(4)),
            "cublasLtMatmulDescSetAttribute",
        )
        self.a, self.b, self.c = (
            self._layout(*size) for size in ((columns, many, columns), (columns, rows, columns), (many, rows, many))
        )
        self.algo = self._fastest(x, w, rows, many)

    def _layout(self, rows: int, columns: int, leading: int) -> ctypes.c_void_p:
        layout = ctypes.c_void_p()
        sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(leading)
        _check(
            self.blas.lt.cublasLtMatrixLayoutCreate(ctypes.byref(layout), self.kind, *sizes),
            "cublasLtMatrixLayoutCreate",
        )
        return layout

    def _fastest(self, x: Any, w: Any, rows: int, many: int) -> Any:
        lt, limit = self.blas.lt, 8
        preference, size, count = ctypes.c_void_p(), ctypes.c_size_t(WORKSPACE), ctypes.c_int()
        _check(lt.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)), "cublasLtMatmulPreferenceCreate")
        _check(
            lt.cublasLtMatmulPreferenceSetAttribute(
                preference, MAX_WORKSPACE_BYTES, ctypes.byref(size), ctypes.c_size_t(8)
            ),
            "cublasLtMatmulPreferenceSetAttribute",
        )
        results = (ctypes.c_uint8 * (RESULT_BYTES * limit))()
        _check(
            lt.cublasLtMatmulAlgoGetHeuristic(
                self.blas._handle,
                self.desc,
                self.a,
                self.b,
                self.c,
                self.c,
                preference,
                limit,
                results,
                ctypes.byref(count),
            ),
            f"cublasLtMatmulAlgoGetHeuristic for {rows} x {many}",
        )
        if not count.value:
            raise KernelError(f"cuBLASLt has no algorithm for a product of {rows} rows with {many} columns")
        algos = [
            (ctypes.c_uint8 * ALGO_BYTES)(*results[RESULT_BYTES * i : RESULT_BYTES * i + ALGO_BYTES])
            for i in range(count.value)
        ]
        out = self.blas.queue.cupy.zeros((rows, many), x.dtype)  # results of the trials go nowhere
        self.blas.queue.cupy.cuda.Stream.null.synchronize()
        took = [[0.0] * 4 for _ in algos]
        for i, algo in enumerate(algos):
            try:
                took[i] = [self._cold(self.launch(x, w, out, algo)) for _ in range(4)]
            except KernelError:
                took[i] = [np.inf] * 4
        # Those that differ little are timed again, in turns: one time in four says too little.
        close = sorted(range(len(algos)), key=lambda i: float(np.median(took[i])))[:FINALISTS]
        for _ in range(TRIALS):
            for i in close:
                if np.isfinite(took[i][0]):
                    took[i].append(self._cold(self.launch(x, w, out, algos[i])))
        return algos[min(close, key=lambda i: float(np.median(took[i])))]

    def _cold(self, launch: Any) -> float:
        """Seconds of one launch that finds nothing of its weights in the caches, as in a step."""
        queue = self.blas.queue
        self.blas.flush.data.memset_async(0, self.blas.flush.nbytes, queue.stream)
        return float(queue.seconds(launch, repeats=1, warm=0)[0])

    def launch(self, x: Any, w: Any, out: Any, algo: Any) -> Any:
        """A launch with one of the ways the library suggested."""
        blas, pointer = self.blas, ctypes.c_void_p
        call = blas.lt.cublasLtMatmul
        args = (
            blas._handle, self.desc, ctypes.byref(self.one), pointer(w.data.ptr), self.a, pointer(x.data.ptr), self.b,
            ctypes.byref(self.beta), pointer(out.data.ptr), self.c, pointer(out.data.ptr), self.c, algo,
            pointer(blas.workspace.data.ptr), ctypes.c_size_t(WORKSPACE), pointer(blas.queue.stream.ptr),
        )  # fmt: skip

        def run(held: Any = (x, w, out)) -> None:
            _check(call(*args), "cublasLtMatmul")

        return run


def _check(status: int, call: str) -> None:
    if status:
        raise KernelError(f"{call} failed with status {status} of cuBLAS")
