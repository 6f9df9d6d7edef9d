"""Python's own part of a step, measured on this machine, beside what was recorded beside a card."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from course import gpu
from course.explore.live import Measuring
from course.gpu import cpu
from course.gpu.errors import FAILS, not_measured
from course.gpu.plain import PlainDevice
from course.gpu.queues import queue
from course.gpu.transformer import Llama, Shape, Step
from course.lessons.lab12.on_device import DEPENDENT, LAUNCHES, Toy
from course.lessons.lab12.recorded import NAMES, brief, recording

INPUTS, STARTING, CHOOSING = PARTS = ("sending inputs", "starting kernels", "choosing tokens")
BATCHES, VOCABULARY, WORK = (1, 8, 32), 2_048, 1_024
LEAST, ENOUGH = 5, 0.05  # repeats of which the median is taken, and seconds after which no further one begins

Parts = dict[str, float]
"""Seconds by part of a step."""


@dataclass(frozen=True)
class Part:
    """Python's part of a step.

    recorded: beside the card. here: on this machine, of that name. steps: whole steps on this machine's GPU, by form.
    """

    recorded: Parts
    where: str = ""
    here: Parts = field(default_factory=dict)
    steps: Parts = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def on_the_card(batch: int, launches: int) -> Part:
    """What was recorded."""
    host = recording().host(batch)
    choosing = host["token chosen here"] - host["step"]
    return Part({INPUTS: host["inputs"], STARTING: recording().of_count(LAUNCHES, launches).host, CHOOSING: choosing})


def _median(work: Callable[[], Any]) -> float:
    found: list[float] = []
    work()
    while len(found) < LEAST or (sum(found) < ENOUGH and len(found) < 200):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return float(np.median(found))


@cache
def _step(batch: int) -> Step:
    """A step whose inputs are as large as those of the small model's; it is not run."""
    shape = Shape(layers=1, hidden=32, inner=32, heads=1, kv_heads=1, width=32, vocabulary=VOCABULARY, tied=True)
    llama = Llama(queue(PlainDevice()), shape, blocks=16 * max(BATCHES), max_tokens=32, max_sequences=32)
    return Step(llama, lengths=[200] * batch, max_blocks=16)


def measured(batch: int, launches: int) -> Iterator[tuple[str, float]]:
    """The parts on this machine, one after the other.

    Starting a kernel is a call from Python into the driver: here a call into a C function that does nothing.
    """
    step, ids = _step(batch), np.full(batch, 300)
    tables = [list(range(16 * row, 16 * row + 16)) for row in range(batch)]
    yield INPUTS, _median(lambda: step.write(ids, tables))
    call = ctypes.pythonapi.Py_IsInitialized

    def start() -> None:
        for _ in range(launches):
            call()

    yield STARTING, _median(start)
    logits = np.random.default_rng(0).standard_normal((batch, VOCABULARY), dtype=np.float32)
    rows: list[list[int]] = [[] for _ in range(batch)]

    def choose() -> None:
        for row, token in zip(rows, logits.argmax(-1).tolist(), strict=True):
            row.append(token)

    yield CHOOSING, _median(choose)


class Bench:
    """Measures each setting: Python's part, and whole steps where there is a GPU."""

    def __init__(self, device: gpu.Device | None) -> None:
        self._device = device
        self._toy: Toy | None = None

    def measuring(self, batch: int, launches: int) -> Measuring:
        """More with each part."""
        shown = replace(on_the_card(batch, launches), where=cpu.name())
        yield shown
        try:
            for name, spent in measured(batch, launches):
                shown = replace(shown, here=shown.here | {name: spent})
                yield shown
            self._device = self._device or gpu.device()
            if self._device.kind == "cuda":
                self._toy = self._toy or Toy(queue(self._device))
                for form in (LAUNCHES, DEPENDENT):
                    spent = self._toy.spent(form, WORK, launches, 20).wall
                    shown = replace(shown, where=self._device.name, steps=shown.steps | {form: spent})
                    yield shown
        except FAILS as error:
            yield replace(shown, warnings=(not_measured(error),))


def rows(found: Part) -> list[tuple[str, ...]]:
    """The parts there and here."""
    shown: list[tuple[str, ...]] = [("", "beside an H200, recorded")]
    shown += [(name, brief(found.recorded[name])) for name in PARTS]
    if found.here:
        shown = [(*shown[0], f"{found.where}, measured")] + [
            (*row, brief(found.here[row[0]]) if row[0] in found.here else "-") for row in shown[1:]
        ]
    for form, spent in found.steps.items():
        shown.append((f"whole step, {NAMES[form]}", "", brief(spent)))
    return shown
