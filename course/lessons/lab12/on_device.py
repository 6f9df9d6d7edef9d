"""What lab 12 starts on a GPU: the note's decode step and the small model's, in every form, and what each costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.gpu.ops import decode_loop
from course.gpu.ops.queue import Launch, Queue

LAUNCHES, GRAPH, DEPENDENT, PERSISTENT = FORMS = ("launches", "graph", "dependent", "persistent")
BATCH, THREADS = 16, 256
QUEUED = 20  # steps that are queued before anybody waits


@dataclass(frozen=True)
class Spent:
    """Seconds of one step, medians.

    host: until the program has started it. wall: until it is done and the program knows. queued: of each of QUEUED
    steps that are started one behind the other, and waited for once.
    """

    host: float
    wall: float
    queued: float


def spent(queue: Queue, step: Launch, repeats: int = 50, before: Launch | None = None) -> Spent:
    """What `step` costs on a queue, by the clock of the program. before: is run before each, and not counted."""
    rows = []
    for _ in range(repeats + 3):  # the first ones load and allocate
        if before:
            before()
        queue.wait()
        began = time.perf_counter()
        step()
        started = time.perf_counter()
        queue.wait()
        rows.append((started - began, time.perf_counter() - began))
    queued = []
    for _ in range(max(3, repeats // 10) if before is None else 0):
        queue.wait()
        began = time.perf_counter()
        for _ in range(QUEUED):
            step()
        queue.wait()
        queued.append((time.perf_counter() - began) / QUEUED)
    host, wall = np.median(rows[3:], axis=0).tolist()
    return Spent(host, wall, float(np.median(queued)) if queued else wall)


class Toy:
    """The note's decode step: `launches` kernels of `work` terms for BATCH sequences, each behind the other."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        put = queue.device.to_device
        self._out, self._count = put(np.zeros(BATCH, np.float32)), put(np.zeros(1, np.uint32))

    def step(self, form: str, work: int, launches: int) -> tuple[Launch, Launch | None]:
        """A step in this form, ready to be started, and what must run before each."""
        if form == PERSISTENT:
            return self._launch(work, launches), lambda: self.queue.write(self._count, np.zeros(1, np.uint32))
        one = self._launch(work, 1, chained=form == DEPENDENT)
        if form == LAUNCHES:
            return in_turn([one] * launches), None
        one()
        return self.queue.captured([one] * launches, self), None

    def _launch(self, work: int, steps: int, chained: bool = False) -> Launch:
        return decode_loop.prepare(
            self.queue, self._out, self._count, work=work, steps=steps, threads=THREADS, chained=chained
        )

    def spent(self, form: str, work: int, launches: int, repeats: int = 50) -> Spent:
        """What such a step costs. Raises KernelError, and ValueError for settings that the kernel does not have."""
        step, before = self.step(form, work, launches)
        return spent(self.queue, step, repeats, before)


def in_turn(launches: list[Launch]) -> Launch:
    """The launches one after the other."""

    def all_of_them() -> None:
        for one in launches:
            one()

    return all_of_them


@contextmanager
def undependent(queue: Any) -> Iterator[None]:
    """Launches that are prepared in here wait for the one before to end, whatever the card can do."""
    before = queue.capability
    queue.capability = min(before, 8)
    try:
        yield
    finally:
        queue.capability = before


Traced = list[tuple[str, float, float]]
"""(name, begin, seconds), in the order of the beginnings."""
Tracer = Callable[[Launch, Queue], dict[str, Traced]]
