"""What lab 02 launches: the read of one matrix, its product with a batch, and attention over a batch's K and V."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product as product_of

import numpy as np

from course import gpu
from course.gpu.errors import FAILS, not_measured
from course.gpu.one_layer import GPU_KIND, WIDTH, in_numpy, on_a_gpu
from course.gpu.ops import numbers, product, read_probe
from course.gpu.ops.queue import Queue
from course.gpu.queues import queue
from course.gpu.timing import Launch, Timing, measuring
from course.lm.threads import one_thread

BATCHES = (1, 4, 16, 64, 256)
WHAT = ("read weights", "matrix product", "attention")
ROWS, COLUMNS = {True: 28_672, False: 4_096}, 4_096
"""Of the matrix, on a GPU or not. Larger than the caches: 235 MB in bf16, 67 MB in float32."""
KV_HEADS = 8
MOST_HERE = 300e6
"""Bytes of K and V that a CPU is given."""
BLOCKS_EACH = 32
"""Thread blocks of the read probe for each multiprocessor: more than run at once, which reads fastest."""
LEAST, LAUNCHES, ENOUGH = 3, 50, 0.2
"""Launches of which the median is taken, at least and at most, and seconds after which no further one begins."""
AT_ONCE = 8_192, 4
"""Of what a CPU computes in one part of a launch: rows of the matrix times sequences, and sequences of the attention.

A move waits for one part at most, a few milliseconds, and not for a whole launch of a large batch.
"""

Times = dict[str, dict[int, float]]
"""Seconds by what was launched and by batch; NaN where nothing was."""


@dataclass(frozen=True)
class Here:
    """What was measured on the device of that name.

    matrix_bytes, kv_bytes: of the matrix, and of one sequence's K and V. latest: by what was launched, how long it took
    at the batch of the latest move.
    """

    where: str
    times: Times = field(default_factory=dict)
    matrix_bytes: int = 0
    kv_bytes: int = 0
    warnings: tuple[str, ...] = ()
    latest: dict[str, Timing] = field(default_factory=dict)


class Bench:
    """Launches all three anew with every move, and once what the lines of its context stand on."""

    def __init__(self, device: gpu.Device | None, max_seconds: float) -> None:
        self._device, self._max_seconds = device, max_seconds
        self._made: tuple[Queue, Pair] | None = None
        self._known: dict[tuple[str, int, int], float] = {}
        """Seconds by what was launched, its batch, and its context, where these make a difference; 0 otherwise."""

    def __call__(self, batch: int, context: int) -> Here:
        """All three over the batches, and those of this batch measured now."""
        *_, found = filter(None, self.measuring(batch, context))
        return found

    def measuring(self, batch: int, context: int) -> Iterator[Here | None]:
        """What is known, then more of what is measured now: all three of this batch, and what others still lack.

        None while a launch goes on: nothing between two yields takes longer than a part of one, but the first time.
        """
        yield self._here(context)
        latest: dict[str, Timing] = {}
        try:
            with one_thread():
                self._made = self._made or _made(self._device or gpu.device())
                self._device = self._made[0].device
                for place, (each, what) in enumerate(product_of((batch, *BATCHES), WHAT)):
                    key, now = _key(what, each, context), place < len(WHAT)
                    if not self._fits(what, each, context) or (key in self._known and not now):
                        continue
                    timing = yield from self._launched(what, each, context)
                    self._known[key] = timing.seconds
                    if now:
                        latest[what] = timing
                    yield replace(self._here(context), latest=dict(latest))
        except FAILS as error:
            yield Here("", warnings=(not_measured(error),))

    def _launched(self, what: str, batch: int, context: int) -> Generator[None, None, Timing]:
        assert self._made is not None
        (work, (probe, multiply)), before = self._made, None
        if what == WHAT[0]:
            launch: Launch | Sequence[Launch] = probe
        elif what == WHAT[1]:
            launch = multiply(batch)
        elif work.device.is_gpu:
            # In a step the weights pass through a GPU's cache between two layers.
            launch, before = on_a_gpu(work, context, KV_HEADS, batch), probe
        else:
            launch = []
            for start in range(0, batch, AT_ONCE[1]):
                launch.append(in_numpy(context, KV_HEADS, min(AT_ONCE[1], batch - start)))
                yield
        yield
        return (yield from timed(work, launch, self._max_seconds, before))

    def _fits(self, what: str, batch: int, context: int) -> bool:
        gpu_here = self._device is not None and self._device.is_gpu
        return what != WHAT[2] or gpu_here or batch * self._kv(context) <= MOST_HERE

    def _kv(self, context: int) -> int:
        """Bytes of one sequence's K and V."""
        return 2 * KV_HEADS * WIDTH * (2 if self._device is not None and self._device.is_gpu else 4) * context

    def _here(self, context: int) -> Here:
        times = {what: {b: self._known.get(_key(what, b, context), float("nan")) for b in BATCHES} for what in WHAT}
        if self._device is None:
            return Here("this machine", times)
        device = self._device
        left_out = [batch for batch in BATCHES if not self._fits(WHAT[2], batch, context)]
        said = (f"The K and V of {left_out[0]} sequences are too much for this machine.",) if left_out else ()
        name = device.name if device.is_gpu else f"{device.name}, NumPy"
        matrix = ROWS[device.is_gpu] * COLUMNS * (2 if device.is_gpu else 4)
        return Here(name, times, matrix, self._kv(context), said)


def _key(what: str, batch: int, context: int) -> tuple[str, int, int]:
    """A read has neither batch nor context, a product no context."""
    return (what, 0 if what == WHAT[0] else batch, context if what == WHAT[2] else 0)


def timed(
    work: Queue, launch: Launch | Sequence[Launch], max_seconds: float, before: Launch | None = None
) -> Generator[None, None, Timing]:
    """LEAST launches, and more as long as they begin in max_seconds, after one that is not counted. KernelError."""
    return measuring(work, launch, launches=LAUNCHES, max_seconds=max_seconds, warm=1, least=LEAST, before=before)


Pair = tuple[Launch, Callable[[int], Launch | Sequence[Launch]]]
"""A launch that reads the matrix, and from a batch to the launch of its product, perhaps in parts."""


def _made(device: gpu.Device) -> tuple[Queue, Pair]:
    work = queue(device)
    return work, _on_a_gpu(work) if device.is_gpu else _in_numpy()


def _in_numpy() -> Pair:
    """One float32 matrix, read by looking for its largest number, and multiplied."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((ROWS[False], COLUMNS), dtype=np.float32)

    def multiply(batch: int) -> Sequence[Launch]:
        x = rng.standard_normal((batch, COLUMNS), dtype=np.float32)
        rows = min(AT_ONCE[0] // batch, 512)
        parts = [w[start : start + rows] for start in range(0, len(w), rows)]
        return [partial(np.matmul, x, part.T, out=np.empty((batch, len(part)), np.float32)) for part in parts]

    return w.max, multiply


def _on_a_gpu(work: Queue) -> Pair:
    """The course's read probe and the vendor's product, over one bf16 matrix. Raises KernelError."""
    device, rng, rows = work.device, np.random.default_rng(0), ROWS[True]
    w = device.to_device(_encoded(rng, rows, COLUMNS))
    words = w.view(np.uint32).reshape(-1)
    out = device.empty((BLOCKS_EACH * work.multiprocessors,), np.uint32)

    def multiply(batch: int) -> Launch:
        x = device.to_device(numbers.encode(rng.standard_normal((batch, COLUMNS), dtype=np.float32), GPU_KIND))
        return product.prepare(work, x, w, device.empty((batch, rows), numbers.dtype(GPU_KIND)), kind=GPU_KIND)

    return read_probe.prepare(work, words, out), multiply


def _encoded(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Random bf16 numbers, the same in every eighth of the rows: to draw all of them would take seconds."""
    piece = numbers.encode(rng.standard_normal((rows // 8, columns), dtype=np.float32), GPU_KIND)
    return np.tile(piece, (8, 1))
