"""The same kernel on every device of this machine agrees with float64, and its times are measured as they should be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from course import gpu
from course.gpu.cpu import CPUStopwatch
from course.gpu.ops.decode_step import MAX_WORK, checked_threads


@pytest.fixture(scope="module", params=["gpu", "cpu", "numpy"])
def device(request: pytest.FixtureRequest) -> gpu.Device:
    """Each back end that there is; what a machine lacks is left out with the reason."""
    if request.param == "gpu":
        found = gpu.device()
        if not found.is_gpu:
            pytest.skip(f"no GPU that works: {found.notes[0]}")
        return found
    try:
        return gpu.device(request.param)
    except gpu.KernelError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("threads", [1, 2, 16, 32, 64, 256, 1_024])
@pytest.mark.parametrize("work", [1, 37, 4_096, 16_389])
def test_it_agrees_with_float64(device: gpu.Device, threads: int, work: int) -> None:
    """The tolerance is the error bound of the sum in float32, not a guess; see `gpu.tolerance`."""
    step = gpu.DecodeStep(device, work, threads, max_batch=9)
    found = step.result(9)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, gpu.reference(9, work), rtol=gpu.tolerance(work, threads))


def test_the_same_launch_gives_the_same_bits(device: gpu.Device) -> None:
    step = gpu.DecodeStep(device, 5_000, 128, max_batch=40)
    np.testing.assert_array_equal(step.result(40), step.result(40))
    np.testing.assert_array_equal(step.result(40)[:3], gpu.DecodeStep(device, 5_000, 128, max_batch=3).result(3))


def test_the_reference_is_the_closed_form() -> None:
    """Sum of 8 x^2 + 28 x with x = a i + s / 2 by the sums of i and i^2, in exact integers but for a."""
    a = float(np.float32(1.000173))
    for work in (1, 2, 37, 16_384, 100_000):
        i1, i2 = work * (work + 1) // 2, work * (work + 1) * (2 * work + 1) // 6
        for s in (0, 1, 15):
            squares = a * a * i2 + a * s * i1 + s * s * work / 4
            expected = 8 * squares + 28 * (a * i1 + s * work / 2)
            assert math.isclose(gpu.reference(16, work)[s], expected, rel_tol=1e-12)  # float64 sums of 1e5 terms


def test_the_tolerance_is_needed_and_no_wider() -> None:
    """Adding all terms one after the other in float32, as one thread does, uses up a fair part of it."""
    x = np.float32(1.000173) * np.arange(1, 4_097, dtype=np.float32)
    terms = (x[:, None] * (x[:, None] + np.arange(8, dtype=np.float32))).ravel()
    error = abs(np.cumsum(terms, dtype=np.float32)[-1] / gpu.reference(1, 4_096)[0] - 1)
    assert 1e-4 * gpu.tolerance(4_096, 1) < error < gpu.tolerance(4_096, 1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"work": 0}, "work must be a whole number from 1 to 16,777,216, not 0"),
        ({"work": MAX_WORK + 1}, "work must be"),
        ({"work": math.nan}, "work must be"),
        ({"threads": 48}, "threads must be a power of two from 1 to 1,024, not 48"),
        ({"threads": 2_048}, "threads must be a whole number from 1 to 1,024, not 2048"),
        ({"threads": -1}, "threads must be"),
        ({"max_batch": 0}, "max_batch must be a whole number from 1 to 65,536, not 0"),
    ],
)
def test_settings_that_no_kernel_can_take(device: gpu.Device, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        gpu.DecodeStep(device, **settings)


def test_a_batch_outside_of_the_buffer_is_not_launched(device: gpu.Device) -> None:
    step = gpu.DecodeStep(device, 10, 32, max_batch=4)
    for batch in (0, 5, -1, 1.5, math.nan, "2"):
        with pytest.raises(ValueError, match="batch must be a whole number from 1 to 4"):
            step.prepare(batch)


def test_powers_of_two() -> None:
    good = [n for n in range(1, 1_025) if _accepted(checked_threads, n)]
    assert good == [2**k for k in range(11)]


def _accepted(check: Callable[[int], int], value: int) -> bool:
    try:
        return check(value) == value
    except ValueError:
        return False


def test_a_timing_is_warm_and_the_median_of_many(device: gpu.Device) -> None:
    step = gpu.DecodeStep(device, 64, 32)
    timing = step.time(2, launches=30, max_seconds=30)
    assert timing.launches == 30 and 0 < timing.low <= timing.seconds <= timing.high
    assert 0 <= timing.gap <= timing.longest_gap
    assert step.time_empty(2, launches=3).seconds > 0
    assert device.pace(step.prepare_empty(2), 5) > 0


def test_only_warm_launches_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first launch that takes a second, and slower ones after it, leave the median where the warm ones are."""
    clock = [0.0]
    monkeypatch.setattr("course.gpu.cpu.time.perf_counter", lambda: clock[0])
    took = iter([1.0, 0.5, 0.25, *[0.01] * 8, 0.9])

    def launch() -> None:
        clock[0] += next(took)

    device = gpu.device("numpy")
    timing = gpu.measure(device, launch, launches=9, max_seconds=100)
    assert timing.launches == 9 and math.isclose(timing.seconds, 0.01) and timing.high > 0.1
    assert timing.gap == 0


def test_a_slow_launch_is_timed_once_however_short_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, count = [0.0], [0]
    monkeypatch.setattr("course.gpu.cpu.time.perf_counter", lambda: clock[0])

    def launch() -> None:
        clock[0] += 10
        count[0] += 1

    assert gpu.measure(gpu.device("numpy"), launch, max_seconds=0.0).launches == 1 and count == [2]
    for settings in ({"launches": 0}, {"max_seconds": -1}, {"max_seconds": math.nan}, {"warm": 0}):
        with pytest.raises(ValueError, match="must be"):
            gpu.measure(gpu.device("numpy"), launch, **settings)


def test_the_gap_is_what_passes_between_two_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 5.0, 6.0])
    monkeypatch.setattr("course.gpu.cpu.time.perf_counter", lambda: next(clock))
    watch = CPUStopwatch()
    first, second = watch.time(lambda: None), watch.time(lambda: None)
    assert first[0] == 1 and math.isnan(first[1]) and second == (1, 4)


def test_live_steps_remember_their_gaps(device: gpu.Device) -> None:
    live = gpu.LiveStep(gpu.DecodeStep(device, 64, 32, max_batch=4))
    assert live.gaps == []
    assert all(live(batch) > 0 for batch in (1, 4, 2))
    assert len(live.gaps) == 3 and all(gap > 0 for gap in live.gaps[1:])


def test_numpy_runs_the_kernels_of_the_course_and_no_others() -> None:
    source = 'extern "C" __global__ void decode_step(float* out, int work) {}'
    with pytest.raises(gpu.KernelError, match="decode_step cannot run here: a kernel from source needs a GPU"):
        gpu.device("numpy").compile(source, "decode_step")


def test_a_graph_holds_the_kernel_alone() -> None:
    """A node has no launch by a program in it, so it takes less."""
    device = gpu.device()
    if device.kind != "cuda":
        pytest.skip("no NVIDIA GPU that works: nothing can be captured")
    step = gpu.DecodeStep(device)
    assert 0 < device.replayed(step.prepare(4)) < step.time(4).seconds
