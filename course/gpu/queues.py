"""Which kind of queue a device has."""

from typing import cast

from course.gpu.device import Device
from course.gpu.ops.queue import Queue


def queue(device: Device) -> Queue:
    """A new queue for the device. Raises KernelError if its driver cannot be called."""
    if device.kind not in ("cuda", "hip"):
        return Queue(device)
    # Imported only if a driver answers: see course.gpu.
    from course.gpu.cuda import CudaQueue, CupyQueue
    from course.gpu.cupy_device import CupyDevice

    return (CudaQueue if device.kind == "cuda" else CupyQueue)(cast(CupyDevice, device))
