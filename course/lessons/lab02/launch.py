"""An explorer that launches: read probe, matrix product and attention at hand, beside the steps of an H100.

The two are different work and are labelled: all layers of a model on a card, and one matrix and the attention of one
layer here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from course import gpu
from course.explore import Explorer, Slider
from course.explore.live import LiveExplorer
from course.gpu.one_layer import GPU_KIND, in_numpy, on_a_gpu
from course.gpu.ops import numbers, product, read_probe
from course.gpu.ops.queue import queue
from course.gpu.timing import measure
from course.lessons.lab02 import figures
from course.lessons.lab02.figures import Times, label
from course.lessons.lab02.one_step import FLOOR, KV_TOKEN, STEP, WEIGHTS, amount
from course.lm.threads import one_thread

BATCHES = (1, 4, 16, 64, 256)
CONTROLS = (
    Slider("batch", "Batch", BATCHES[0], BATCHES[-1], 4, 16, "sequences", log=True),
    Slider("context", "Context", 256, 1_024, 2, 512, "tokens", log=True),
)
WHAT = ("read weights", "matrix product", "attention")
ROWS, COLUMNS = {True: 28_672, False: 4_096}, 4_096
"""Of the matrix, on a GPU or not. Larger than the caches: 235 MB in bf16, 67 MB in float32."""
KV_HEADS, WIDTH = 8, 128
MOST_HERE = 300e6
"""Bytes of K and V that a CPU is given."""


@dataclass(frozen=True)
class Here:
    """What was measured on the device of that name. bytes: of the matrix, and of one sequence's K and V."""

    where: str
    times: Times
    matrix_bytes: int = 0
    kv_bytes: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launched:
    """One setting: the recorded step in two parts over the batch, the time to read the weights, and this machine."""

    batch: int
    context: int
    recorded: Times
    here: Here = field(default_factory=lambda: Here("", {}))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept something from running here."""
        return self.here.warnings


def on_the_card(batch: int, context: int) -> Launched:
    """The recorded steps: without K and V, and what their context adds. The probe is the rate of the card."""
    lines = {each: STEP.decode_line(each) for each in BATCHES}
    values = (
        {each: FLOOR.weights for each in BATCHES},
        {each: base for each, (base, _) in lines.items()},
        {each: slope * each * context for each, (_, slope) in lines.items()},
    )
    return Launched(batch, context, dict(zip(WHAT, values, strict=True)))


class Bench:
    """Launches every batch once for each context and remembers; the median of several launches each."""

    def __init__(self, device: gpu.Device | None, max_seconds: float) -> None:
        self._device, self._max_seconds = device, max_seconds
        self._products: dict[str, dict[int, float]] = {}
        self._known: dict[int, Here] = {}

    def __call__(self, context: int) -> Here:
        """All three over the batches."""
        if context not in self._known:
            with one_thread():
                self._known[context] = self._measure(context)
        return self._known[context]

    def _measure(self, context: int) -> Here:
        try:
            device = self._device = self._device or gpu.device()
            if not self._products:
                self._products = self._reading(device)
            size = 2 * KV_HEADS * WIDTH * (2 if device.is_gpu else 4) * context
            attention = {}
            for batch in BATCHES:
                fits = device.is_gpu or batch * size <= MOST_HERE
                attention[batch] = self._median(device, _attention(device, context, batch)) if fits else float("nan")
        except gpu.KernelError as error:
            return Here("", {}, warnings=(f"Nothing is measured here: {error}.",))
        left_out = [batch for batch, took in attention.items() if not np.isfinite(took)]
        said = f"The K and V of {left_out[0]} sequences are too much for this machine." if left_out else ""
        name = device.name if device.is_gpu else f"{device.name}, NumPy"
        matrix = ROWS[device.is_gpu] * COLUMNS * (2 if device.is_gpu else 4)
        return Here(name, self._products | {WHAT[2]: attention}, matrix, size, (said,) if said else ())

    def _reading(self, device: gpu.Device) -> dict[str, dict[int, float]]:
        probe, multiply = _on_a_gpu(device) if device.is_gpu else _in_numpy()
        took = self._median(device, probe)
        return {
            WHAT[0]: dict.fromkeys(BATCHES, took),
            WHAT[1]: {batch: self._median(device, multiply(batch)) for batch in BATCHES},
        }

    def _median(self, device: gpu.Device, launch: Callable[[], Any]) -> float:
        return seconds_of(device, launch, self._max_seconds)


def seconds_of(device: gpu.Device, launch: Callable[[], Any], max_seconds: float) -> float:
    """The median of at most 15 launches. Raises KernelError."""
    return measure(device, launch, launches=15, max_seconds=max_seconds, warm=1).seconds


def _attention(device: gpu.Device, context: int, batch: int) -> Callable[[], Any]:
    if device.is_gpu:
        return on_a_gpu(device, context, KV_HEADS, batch)
    return in_numpy(context, KV_HEADS, batch)


Pair = tuple[Callable[[], Any], Callable[[int], Callable[[], Any]]]
"""A launch that reads the matrix, and from a batch to the launch of its product."""


def _in_numpy() -> Pair:
    """One float32 matrix, read by looking for its largest number, and multiplied."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((ROWS[False], COLUMNS), dtype=np.float32)

    def multiply(batch: int) -> Callable[[], Any]:
        x = rng.standard_normal((batch, COLUMNS), dtype=np.float32)
        out = np.empty((batch, len(w)), np.float32)
        return lambda: np.matmul(x, w.T, out=out)

    return w.max, multiply


def _on_a_gpu(device: gpu.Device) -> Pair:
    """The course's read probe and the vendor's product, over one bf16 matrix. Raises KernelError."""
    rng, work = np.random.default_rng(0), queue(device)
    rows = ROWS[True]
    piece = numbers.encode(rng.standard_normal((rows // 8, COLUMNS), dtype=np.float32), GPU_KIND)
    w = device.to_device(np.tile(piece, (8, 1)))
    words = w.view(np.uint32).reshape(-1)
    out = device.empty((8 * work.multiprocessors,), np.uint32)

    def multiply(batch: int) -> Callable[[], Any]:
        x = device.to_device(numbers.encode(rng.standard_normal((batch, COLUMNS), dtype=np.float32), GPU_KIND))
        return product.prepare(work, x, w, device.empty((batch, rows), numbers.dtype(GPU_KIND)), kind=GPU_KIND)

    return read_probe.prepare(work, words, out), multiply


def read_rate(device: gpu.Device, size: int, every: int = 1, *, max_seconds: float = 0.05) -> float:
    """Bytes/s at which so many bytes are read again and again; on a CPU perhaps only every so many numbers one.

    Raises KernelError.
    """
    if device.is_gpu:
        work = queue(device)
        words = device.to_device(np.zeros(size // 4, np.uint32))
        out = device.empty((8 * work.multiprocessors,), np.uint32)
        return size / seconds_of(device, read_probe.prepare(work, words, out), max_seconds)
    # Ones: pages of zeros that nobody wrote are all one page.
    numbers_there = np.ones(size // 4, np.float32)[::every]
    return 4 * numbers_there.size / seconds_of(device, numbers_there.max, max_seconds)


def launch_explorer(device: gpu.Device | None = None, *, max_seconds: float = 0.05) -> Explorer:
    """Sliders for batch and context over what is launched here, with the recorded steps beside it.

    device: where to run; the best there is, found when the explorer is shown. max_seconds: after which nothing is
    launched another time. A device that fails leaves the recording and a sentence. As text the explorer is the recorded
    part alone, which is the same on every machine.
    """
    bench = Bench(device, max_seconds)

    def both(batch: int, context: int) -> Launched:
        return replace(on_the_card(batch, context), here=bench(context))

    shared: dict[str, Any] = {
        "controls": CONTROLS,
        "figure": lambda found: figures.two_machines(found.recorded, found.here.times, found.batch),
        "summary": rows,
        "title": "Weights for all, K and V for each",
        "badge": STEP.badge,
        "beside": False,
    }
    return LiveExplorer(Explorer(on_the_card, **shared), both, **shared)


def rows(found: Launched) -> list[tuple[str, ...]]:
    """What is read and how long it takes, at this batch."""
    kv = amount(KV_TOKEN * found.batch * found.context, "B")
    columns: list[tuple[str, ...]] = [
        ("H100, recorded", amount(WEIGHTS, "B"), *(label(found.recorded[what][found.batch]) for what in WHAT[:2]), kv,
         label(found.recorded[WHAT[2]][found.batch]))
    ]  # fmt: skip
    here = found.here
    if here.times:
        times = [label(here.times[what][found.batch]) for what in WHAT]
        kv = amount(here.kv_bytes * found.batch, "B")
        columns.append((f"{here.where}, measured", amount(here.matrix_bytes, "B"), *times[:2], kv, times[2]))
    labels = ("", "weights", "read them", "multiply by them", "K and V", "attention")
    return [(name, *values) for name, *values in zip(labels, *columns, strict=True)]
