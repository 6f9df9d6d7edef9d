"""The CPU shim: right results with barriers and shuffles, and a sentence for what a GPU would leave undefined."""

from __future__ import annotations

import os
import platform
import signal
import threading

import numpy as np
import pytest

from course import gpu
from course.gpu import build
from course.gpu.shim import ShimDevice

try:
    build.compiler()
    MISSING = ""
except gpu.KernelError as error:
    MISSING = str(error)
X86 = platform.machine().lower() in ("x86_64", "amd64")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(scope="module")
def device() -> ShimDevice:
    return ShimDevice()


def kernel(body: str, name: str = "planted", parameters: str = "float* out, int n") -> str:
    return f'extern "C" __global__ void {name}({parameters}) {{\n{body}\n}}\n'


SIMPLE = """
    if (n == 1) out[-1] = 1;
    if (n == 2) for (volatile int i = 0; n;) ++i;
    out[threadIdx.x] = threadIdx.x;
"""
FAULTS = """
    switch (n) {
    case 10: if (threadIdx.x == 5) return;
        __syncthreads(); break;
    case 20: if (threadIdx.x < 48)
            __syncthreads();
        else
            __syncthreads(); break;
    case 30: if (threadIdx.x == 0) return;
        __syncthreads(); break;
    case 40: if (blockIdx.x == 1 && threadIdx.x == 63) return;
        __syncthreads(); break;
    case 50: if (threadIdx.x % 2)
            SHUFFLE_DOWN(n, 1);
        else
            SHUFFLE_DOWN(n, 2); break;
    case 60: if (threadIdx.x == 40)
            __syncthreads();
        SHUFFLE_DOWN(n, 1);
        __syncthreads(); break;
    case 70: fixed[threadIdx.x] = n;
    }
    if (blockIdx.x != 1 || threadIdx.x != 9) return;
    switch (n) {
    case 1: out[63] = 1; break;
    case 2: out[5000] = 1; break;
    case 3: out[0] += out[4000]; break;
    case 4: out[-3] = 1; break;
    case 5: out[-2000] = 1; break;
    case 6: out[1ll << 40] = 1; break;
    case 7: box[65] = 1; break;
    case 8: box[-1] = 1; break;
    case 9: fixed[n + 247] = 1; break;
    case 11: out[0] = n / static_cast<int>(gridDim.x - 2); break;
    case 12: deep(out, n); break;
    case 13: out[-100] = 1; break;
    case 14: __builtin_trap();
    }
"""
DEEP = """
__device__ __attribute__((noinline)) void deep(float* out, int n) {
    volatile float large[30000];
    for (int i = 0; i < 30000; ++i) large[i] = n;
    out[0] = large[n];
}
"""


def line_of(text: str, nth: int = 0) -> int:
    """The line of `text` in the source of the faulty kernel; its nth line that holds it."""
    return [i for i, line in enumerate(faulty().splitlines(), start=1) if text in line][nth]


def faulty() -> str:
    return DEEP + kernel("SHARED(float, box); __shared__ float fixed[256];" + FAULTS)


def caught(device: ShimDevice, n: int, threads: int = 64) -> str:
    """The sentence for fault number n."""
    planted = device.compile(faulty(), "planted")
    with pytest.raises(gpu.KernelError) as found:
        planted(2, threads, (device.empty(63, np.float32), n), 256)
    return str(found.value)


def test_barriers_and_shuffles_move_values_between_all_threads(device: ShimDevice) -> None:
    """Rotate values through shared memory, then exchange them inside each group of 32 lanes, for odd sizes too."""
    body = """
    SHARED(int, box);
    const int t = threadIdx.x;
    box[t] = t * t;
    __syncthreads();
    const int next = box[(t + 1) % blockDim.x];
    const int down = SHUFFLE_DOWN(next, 3), across = SHUFFLE_XOR(next, 1);
    SYNC_LANES();
    for (int round = 0; round < 3; ++round) __syncthreads();
    out[3 * (blockIdx.x * blockDim.x + t)] = next;
    out[3 * (blockIdx.x * blockDim.x + t) + 1] = down;
    out[3 * (blockIdx.x * blockDim.x + t) + 2] = across;
    """
    moved = device.compile(kernel(body, parameters="int* out"), "planted")
    for threads in (32, 64, 96, 1024):
        out = device.empty((2, threads, 3), np.int32)
        moved(2, threads, (out,), 4 * threads)
        t = np.arange(threads)
        following = (t + 1) % threads
        following = following * following
        lane, group = t % 32, t // 32 * 32
        down = following[group + np.where(lane + 3 < 32, lane + 3, lane)]
        across = following[group + (lane ^ 1)]
        for block in range(2):
            np.testing.assert_array_equal(device.to_numpy(out)[block], np.stack([following, down, across], axis=1))


def test_three_dimensions_and_all_kinds_of_arguments(device: ShimDevice) -> None:
    body = """
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = in[0] * scale + shift + thread + 1000.0 * block + sign;
    """
    parameters = "double* __restrict__ out, const float* in, double scale, float shift, int sign"
    run = device.compile(kernel(body, parameters=parameters), "planted")
    out, given = device.empty(24 * 12, np.float64), np.array([3.0], dtype=np.float32)
    run((2, 3, 4), (3, 2, 2), (out, given, 0.5, 0.25, -1))
    block, thread = np.divmod(np.arange(24 * 12), 12)
    np.testing.assert_array_equal(device.to_numpy(out), 1.5 + 0.25 + thread + 1000.0 * block - 1)


def test_a_plain_array_is_written_back(device: ShimDevice) -> None:
    """Memory that did not come from the device is copied in and out: the guard pages hold for it too."""
    run = device.compile(kernel(SIMPLE), "planted")
    out = np.zeros(8, dtype=np.float32)
    run(1, 8, (out, 0))
    assert out.tolist() == list(range(8))
    part = device.to_device(np.zeros(8, dtype=np.float32))
    run(1, 4, (part[4:], 0))
    assert part.tolist() == [0, 0, 0, 0, 0, 1, 2, 3]


def test_a_barrier_that_some_threads_never_reach(device: ShimDevice) -> None:
    first = line_of("case 10") + 1
    assert caught(device, 10) == (
        f"planted: block 0, thread 0 waits at the barrier in line {first}, but thread 5 has ended: "
        "every thread of a block must reach the same __syncthreads()"
    )
    first = line_of("case 20") + 1
    expected = f"thread 0 waits at the barrier in line {first}, but thread 48 waits at the barrier in line {first + 2}"
    assert expected in caught(device, 20)
    assert f"thread 1 waits at the barrier in line {line_of('case 30') + 1}, but thread 0 has ended" in caught(
        device, 30
    )
    assert "block 1, thread 0 waits at the barrier" in caught(device, 40)  # block 0 has no fault


def test_a_shuffle_that_some_lanes_never_reach(device: ShimDevice) -> None:
    said, first = caught(device, 50), line_of("case 50") + 1
    assert f"waits at the shuffle in line {first}" in said and f"at the shuffle in line {first + 2}" in said
    assert "every lane of a group of 32 must reach the same shuffle" in said
    first = line_of("case 60") + 1
    expected = f"thread 32 waits at the shuffle in line {first + 1}, but thread 40 waits at the barrier in line {first}"
    assert expected in caught(device, 60)


def test_a_lane_that_is_not_there_gives_no_number(device: ShimDevice) -> None:
    """On a GPU the value is undefined; here it is NaN, so a kernel that uses it shows it."""
    run = device.compile(kernel("out[threadIdx.x] = SHUFFLE_DOWN(1.0f, 8);"), "planted")
    out = device.empty(16, np.float32)
    run(1, 16, (out, 0))
    np.testing.assert_array_equal(np.isnan(device.to_numpy(out)), [False] * 8 + [True] * 8)


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (1, "wrote outside its memory: element 63 of out, which has 63"),
        (2, "read or wrote outside its memory: element 5,000 of out, which has 63"),
        (3, "read or wrote outside its memory: element 4,000 of out, which has 63"),
        (4, "wrote outside its memory: element -3 of out, which has 63"),
        (5, "read or wrote outside its memory: element -2,000 of out, which has 63"),
        (6, "read or wrote outside its memory: far away from every buffer"),
        (7, "read or wrote outside its memory: byte 260 of the shared memory, which has 256"),
        (8, "wrote outside its memory: byte -4 of the shared memory, which has 256"),
        (9, "used the index 256 in line"),
        pytest.param(11, "divided an integer by zero", marks=pytest.mark.skipif(not X86, reason="only x86 traps it")),
        (14, "did something undefined, such as a division by zero"),
        (12, "too many local variables for its stack"),
    ],
)
def test_memory_that_is_not_the_kernels(device: ShimDevice, n: int, said: str) -> None:
    """Writes outside of a buffer, and most reads, are caught in the block and thread that do it."""
    found = caught(device, n)
    assert found.startswith("planted: block 1, thread 9 ") and said in found


def test_a_write_far_before_a_buffer_names_the_block(device: ShimDevice) -> None:
    """Between the bytes looked at after every turn and the guard page, only the end of the block tells."""
    said = "planted: some thread of block 1 wrote outside its memory: element -100 of out, which has 63"
    assert caught(device, 13) == said


def test_the_shared_array_that_is_too_small(device: ShimDevice) -> None:
    """An array of 256 floats serves 256 threads and no more: with 512 it overflows without a word on a GPU."""
    line = line_of("case 70")
    device.compile(faulty(), "planted")(2, 256, (device.empty(63, np.float32), 70), 256)
    assert f"block 0, thread 256 used the index 256 in line {line}" in caught(device, 70, threads=512)


def test_after_a_fault_the_next_launch_is_sound(device: ShimDevice) -> None:
    run = device.compile(kernel(SIMPLE), "planted")
    out = device.empty(64, np.float32)
    for _ in range(3):
        with pytest.raises(gpu.KernelError, match="thread 0 wrote outside its memory: element -1 of out"):
            run(1, 64, (out, 1))
        run(1, 64, (out, 0))
        assert device.to_numpy(out).tolist() == list(range(64))


def test_an_endless_loop_can_be_interrupted(device: ShimDevice) -> None:
    """As Kernel > Interrupt does; without it, only stopping the whole process would help."""
    before = signal.getsignal(signal.SIGINT)
    run = device.compile(kernel(SIMPLE), "planted")
    out = device.empty(1, np.float32)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(1, 1, (out, 2))
    timer.join()
    assert signal.getsignal(signal.SIGINT) is before
    run(1, 1, (out, 0))


def test_launches_from_several_threads_take_turns(device: ShimDevice) -> None:
    step = gpu.DecodeStep(device, 300, 64)
    expected, found = step.result(16), []

    def work() -> None:
        mine = gpu.DecodeStep(device, 300, 64)
        found.extend(mine.result(16) for _ in range(20))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 60
    for result in found:
        np.testing.assert_array_equal(result, expected)
