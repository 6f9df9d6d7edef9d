"""What a step reads besides weights and cache: token numbers, block tables, lists of work, all int32."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from course.gpu.ops.queue import Queue

ALIGNED = 32  # numbers, 128 bytes: each array begins where a line of memory does


class Inputs:
    """Arrays in one piece of memory on the device, and the same on the host: fill `here`, then `send` is one copy.

    sizes: the shape of each by name. there: the arrays of the device, by name.
    """

    def __init__(self, queue: Queue, sizes: Mapping[str, tuple[int, ...]]) -> None:
        self.queue = queue
        counts = [math.prod(shape) for shape in sizes.values()]
        begins = np.cumsum([0, *(-(-count // ALIGNED) * ALIGNED for count in counts)]).tolist()
        self._host = np.zeros(begins[-1], np.int32)
        self._device = queue.device.to_device(self._host)
        self.here: dict[str, np.ndarray] = {}
        self.there: dict[str, Any] = {}
        for (name, shape), begin, count in zip(sizes.items(), begins, counts, strict=False):
            self.here[name] = self._host[begin : begin + count].reshape(shape)
            self.there[name] = self._device[begin : begin + count].reshape(shape)

    def send(self) -> None:
        """Copy all that is in `here` to the device, before what is launched next."""
        self.queue.write(self._device, self._host)
