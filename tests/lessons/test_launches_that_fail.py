"""Explorers that launch, on a device that fails at any launch: the recording stays, with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from course import gpu
from course.explore import Explorer
from course.gpu.errors import not_measured
from course.lessons.lab02 import on_device
from course.lessons.lab02.launch import launch_explorer

EXPLORERS: dict[str, Callable[..., Explorer]] = {
    "lab02": launch_explorer,
}


class OutOfMemoryError(MemoryError):
    """As CuPy's."""


ERRORS = (
    gpu.KernelError("the driver is gone"),
    MemoryError(),
    OutOfMemoryError("Out of memory allocating 1,073,741,824 bytes (allocated so far: 0 bytes)."),
)


def failing(error: BaseException, at: int) -> gpu.Device:
    """NumPy, whose launches fail from this one on."""
    device, done = copy(gpu.device("numpy")), [0]

    class Watch:
        def time(self, launch: Callable[[], Any]) -> tuple[float, float]:
            launch()
            done[0] += 1
            if done[0] > at:
                raise error
            return 1e-3, 0.0

    device.stopwatch = Watch
    return device


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("lab", EXPLORERS)
def test_a_launch_that_fails_leaves_the_recording_and_a_sentence(lab, at, error, monkeypatch) -> None:
    monkeypatch.setattr(on_device, "ROWS", {False: 64, True: 28_672})
    monkeypatch.setattr(on_device, "BATCHES", (1, 4, 16))
    explorer = EXPLORERS[lab](failing(error, at), max_seconds=0)
    text = explorer.text()
    found = explorer.compute()
    assert tuple(found.warnings) == (not_measured(error),)
    assert explorer.drawn(found).data and explorer.rows(found)
    assert explorer.text() == text and "Nothing is measured" not in text


def test_the_sentences() -> None:
    assert [not_measured(error) for error in ERRORS] == [
        "Nothing is measured here: the driver is gone.",
        "Nothing is measured here: there is not enough memory free.",
        "Nothing is measured here: there is not enough memory free (Out of memory allocating 1,073,741,824 bytes "
        "(allocated so far: 0 bytes)).",
    ]
