"""Kernels on whatever is there: a GPU through CuPy, one CPU core through a compiler, or NumPy.

    from course import gpu
    where = gpu.device()              # never fails; where.name, where.badge, where.notes
    step = gpu.DecodeStep(where, work=16_384, threads=256)
    step.time(batch=8).seconds        # the median of many warm launches
    step.time_empty(batch=8).seconds  # how much of that is only the launch

`gpu.ops` holds the operations of a real transformer's step, `gpu.transformer` a Llama-shaped model made of them, and
`gpu.step_profile` records how long its steps take.

Only this package imports CuPy, and only if a driver of a GPU answers.
"""

from course.gpu.device import WORDS, Device, Kernel, Stopwatch
from course.gpu.discover import KINDS, device
from course.gpu.errors import KernelError
from course.gpu.ops.decode_step import DecodeStep, LiveStep, reference, tolerance
from course.gpu.timing import Timing, measure

__all__ = [
    "KINDS",
    "WORDS",
    "DecodeStep",
    "Device",
    "Kernel",
    "KernelError",
    "LiveStep",
    "Stopwatch",
    "Timing",
    "device",
    "measure",
    "reference",
    "tolerance",
]
