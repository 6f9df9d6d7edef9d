"""Numbers of the kernels: fp16 is read as what it is, whatever a compiler takes for zero."""

from __future__ import annotations

import numpy as np

from course.gpu.ops.queue import Queue

# CuPy compiles with -ftz=true: floats below 2^-126 are zero. A CPU can be told the same, for the time of the loop.
SOURCE = """
#if defined(CPU_SHIM) && defined(__SSE2__)
#define FLUSH(bits) __builtin_ia32_ldmxcsr(bits)
#else
#define FLUSH(bits)
#endif
extern "C" __global__ void numbers_of(const unsigned char* given, float* found) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    FLUSH(0x9fc0);
    found[i] = from_fp16(((const bits16*)given)[i]);
    FLUSH(0x1f80);
}
"""


def test_fp16_is_read_exactly_where_small_floats_are_zero(compiled: Queue) -> None:
    every = np.arange(2**16, dtype=np.uint16)
    given, found = (
        compiled.device.to_device(every.view(np.uint8)),
        compiled.device.to_device(np.zeros(2**16, np.float32)),
    )
    compiled.device.compile(SOURCE, "numbers_of")(256, 256, (given, found))
    compiled.wait()
    right = every.view(np.float16).astype(np.float32)
    assert np.array_equal(compiled.device.to_numpy(found), right, equal_nan=True)
