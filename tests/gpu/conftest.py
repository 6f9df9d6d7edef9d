"""The devices on which the operations are tested: NumPy, the CPU shim, and a GPU where there is one (`-m gpu`)."""

from __future__ import annotations

import pytest

from course import gpu
from course.gpu.ops.queue import Queue
from course.gpu.plain import PlainDevice
from course.gpu.queues import queue

_queues: dict[str, Queue | str] = {}


def queue_on(kind: str) -> Queue:
    """A queue of this kind of device, made once; skips the test where there is none."""
    if kind not in _queues:
        try:
            if kind == "numpy":
                _queues[kind] = queue(PlainDevice())
            else:
                found = gpu.device({"cpu-shim": "cpu"}.get(kind, kind))
                usable = found.kind == kind
                _queues[kind] = queue(found) if usable else f"no {kind} here: {' '.join(found.notes) or found.name}"
        except gpu.KernelError as error:
            _queues[kind] = str(error)
    found_queue = _queues[kind]
    if isinstance(found_queue, str):
        pytest.skip(found_queue)
    return found_queue


DEVICES = ["numpy", "cpu-shim", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def on(request: pytest.FixtureRequest) -> Queue:
    """A queue on each device in turn."""
    return queue_on(request.param)


@pytest.fixture(params=DEVICES[1:])
def compiled(request: pytest.FixtureRequest) -> Queue:
    """A queue on each device that runs the kernels' own source."""
    return queue_on(request.param)
