"""What lab 02 launches: the read of one matrix, its product with a batch, and attention over a batch's K and V."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from course import gpu
from course.gpu.errors import FAILS, not_measured
from course.gpu.one_layer import GPU_KIND, WIDTH, in_numpy, on_a_gpu
from course.gpu.ops import numbers, product, read_probe
from course.gpu.ops.queue import Queue
from course.gpu.queues import queue
from course.gpu.timing import Timing, measure
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
READS_AT_ONCE = 20
LAUNCHES, ENOUGH = 5, 0.2
"""Launches of which the median is taken, and seconds after which no other begins."""

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
    """Launches all three anew with every move; the other batches of a context once, for the lines to stand on."""

    def __init__(self, device: gpu.Device | None, max_seconds: float) -> None:
        self._device, self._max_seconds = device, max_seconds
        self._made: tuple[Queue, Pair] | None = None
        self._products: Times = {}
        self._known: dict[int, Here] = {}

    def __call__(self, batch: int, context: int) -> Here:
        """All three over the batches, and those of this batch measured now."""
        with one_thread():
            if context not in self._known:
                self._known[context] = self._measure(context)
            self._known[context] = self._again(self._known[context], batch, context)
        return self._known[context]

    def _again(self, found: Here, batch: int, context: int) -> Here:
        if not found.times or self._made is None:
            return found
        work, (probe, multiply) = self._made
        fits = np.isfinite(found.times[WHAT[2]][batch])
        launches: dict[str, tuple[Callable[[], Any], Callable[[], Any] | None]] = {WHAT[0]: (probe, None)}
        try:
            launches[WHAT[1]] = multiply(batch), None
            if fits:
                before = probe if work.device.is_gpu else None
                launches[WHAT[2]] = _attention(work, context, batch), before
            latest = {
                what: timed(work, launch, self._max_seconds, before) for what, (launch, before) in launches.items()
            }
        except FAILS as error:
            return Here("", warnings=(not_measured(error),))
        read = latest[WHAT[0]].seconds
        times = {what: dict(each) for what, each in found.times.items()}
        for what, timing in latest.items():
            times[what][batch] = timing.seconds
        times[WHAT[0]] = dict.fromkeys(BATCHES, read)
        self._products = {what: times[what] for what in WHAT[:2]}
        return replace(found, times=times, latest=latest)

    def _measure(self, context: int) -> Here:
        try:
            device = self._device = self._device or gpu.device()
            work, (probe, multiply) = self._made = self._made or _made(device)
            if not self._products:
                self._products = {
                    WHAT[0]: dict.fromkeys(BATCHES, self._median(work, probe)),
                    WHAT[1]: {batch: self._median(work, multiply(batch)) for batch in BATCHES},
                }
            size = 2 * KV_HEADS * WIDTH * (2 if device.is_gpu else 4) * context
            attention = {}
            for batch in BATCHES:
                fits = device.is_gpu or batch * size <= MOST_HERE
                launch = _attention(work, context, batch) if fits else None
                # In a step the weights pass through a GPU's cache between two layers.
                before = probe if device.is_gpu else None
                attention[batch] = self._median(work, launch, before) if launch else float("nan")
        except FAILS as error:
            return Here("", warnings=(not_measured(error),))
        left_out = [batch for batch, took in attention.items() if not np.isfinite(took)]
        said = f"The K and V of {left_out[0]} sequences are too much for this machine." if left_out else ""
        name = device.name if device.is_gpu else f"{device.name}, NumPy"
        matrix = ROWS[device.is_gpu] * COLUMNS * (2 if device.is_gpu else 4)
        return Here(name, self._products | {WHAT[2]: attention}, matrix, size, (said,) if said else ())

    def _median(self, work: Queue, launch: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
        return seconds_of(work, launch, self._max_seconds, before)


def seconds_of(
    work: Queue, launch: Callable[[], Any], max_seconds: float, before: Callable[[], Any] | None = None
) -> float:
    """The median of some launches. Raises KernelError."""
    return timed(work, launch, max_seconds, before).seconds


def timed(
    work: Queue, launch: Callable[[], Any], max_seconds: float, before: Callable[[], Any] | None = None
) -> Timing:
    """LAUNCHES launches, or as many as begin in max_seconds, after one that is not counted. Raises KernelError."""
    return measure(work, launch, launches=LAUNCHES, max_seconds=max_seconds, warm=1, before=before)


def _attention(work: Queue, context: int, batch: int) -> Callable[[], Any]:
    if work.device.is_gpu:
        return on_a_gpu(work, context, KV_HEADS, batch)
    return in_numpy(context, KV_HEADS, batch)


Pair = tuple[Callable[[], Any], Callable[[int], Callable[[], Any]]]
"""A launch that reads the matrix, and from a batch to the launch of its product."""


def _made(device: gpu.Device) -> tuple[Queue, Pair]:
    work = queue(device)
    return work, _on_a_gpu(work) if device.is_gpu else _in_numpy()


def _in_numpy() -> Pair:
    """One float32 matrix, read by looking for its largest number, and multiplied."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((ROWS[False], COLUMNS), dtype=np.float32)

    def multiply(batch: int) -> Callable[[], Any]:
        x = rng.standard_normal((batch, COLUMNS), dtype=np.float32)
        out = np.empty((batch, len(w)), np.float32)
        return lambda: np.matmul(x, w.T, out=out)

    return w.max, multiply


def _on_a_gpu(work: Queue) -> Pair:
    """The course's read probe and the vendor's product, over one bf16 matrix. Raises KernelError."""
    device, rng, rows = work.device, np.random.default_rng(0), ROWS[True]
    w = device.to_device(_encoded(rng, rows, COLUMNS))
    words = w.view(np.uint32).reshape(-1)
    out = device.empty((BLOCKS_EACH * work.multiprocessors,), np.uint32)

    def multiply(batch: int) -> Callable[[], Any]:
        x = device.to_device(numbers.encode(rng.standard_normal((batch, COLUMNS), dtype=np.float32), GPU_KIND))
        return product.prepare(work, x, w, device.empty((batch, rows), numbers.dtype(GPU_KIND)), kind=GPU_KIND)

    return read_probe.prepare(work, words, out), multiply


def _encoded(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Random bf16 numbers, the same in every eighth of the rows: to draw all of them would take seconds."""
    piece = numbers.encode(rng.standard_normal((rows // 8, columns), dtype=np.float32), GPU_KIND)
    return np.tile(piece, (8, 1))


def read_rate(device: gpu.Device, size: int, every: int = 1, *, max_seconds: float = ENOUGH) -> float:
    """Bytes/s at which so many bytes are read again and again; on a CPU perhaps only every so many numbers one.

    Raises KernelError.
    """
    work = queue(device)
    if device.is_gpu:
        words = device.to_device(_encoded(np.random.default_rng(0), size // 128, 64)).view(np.uint32).reshape(-1)
        out = device.empty((BLOCKS_EACH * work.multiprocessors,), np.uint32)
        # A launch by itself takes longer than to read a small array.
        many = work.captured([read_probe.prepare(work, words, out)] * READS_AT_ONCE)
        return READS_AT_ONCE * size / seconds_of(work, many, max_seconds)
    # Ones: pages of zeros that nobody wrote are all one page.
    numbers_there = np.ones(size // 4, np.float32)[::every]
    return 4 * numbers_there.size / seconds_of(work, numbers_there.max, max_seconds)
