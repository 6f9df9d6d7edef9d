"""Two processes, each with a card: timing on both, watts, and the kinds of all-reduce between them."""

from __future__ import annotations

import ctypes
import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pynvml
import torch
import torch.distributed as dist

LARGEST = 2048 * 8192
"""Numbers of the largest all-reduce."""
BF16 = torch.bfloat16


def three(values: np.ndarray) -> list[float]:
    """Median, 10th and 90th percentile, four digits each."""
    return [float(f"{value:.4g}") for value in np.percentile(values, (50, 10, 90))]


class Pair:
    """One of the two processes: its card, its clock and what both agree on."""

    def __init__(self, rank: int, limit: float):
        self.rank, self.limit, self.began = rank, limit, time.perf_counter()
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29514")
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
        pynvml.nvmlInit()
        self.card = pynvml.nvmlDeviceGetHandleByIndex(rank)
        self.clocks: list[int] = []

    def agree(self, value: float) -> float:
        """The larger of the two processes' values."""
        both = torch.tensor([value], device="cuda", dtype=torch.float64)
        dist.all_reduce(both, dist.ReduceOp.MAX)
        return float(both)

    def over(self) -> bool:
        """Whether no further point may start."""
        return self.agree(time.perf_counter() - self.began) > self.limit

    def in_a_row(self, call, repeats: int, each: int = 1) -> np.ndarray:
        """Microseconds of each call, on the card's clock, with no wait between calls. each: what one call holds."""
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        dist.barrier()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
        events[0].record()
        for event in events[1:]:
            call()
            event.record()
        torch.cuda.synchronize()
        return np.array([a.elapsed_time(b) for a, b in pairwise(events)]) * 1e3 / each

    def one_by_one(self, call, repeats: int, each: int = 1) -> np.ndarray:
        """Microseconds of each call on the host's clock, until the card is done."""
        found = []
        for _ in range(repeats + 3):
            dist.barrier()
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            found.append(time.perf_counter() - start)
        return np.array(found[3:]) * 1e6 / each

    def watts(self, call, seconds: float, window: float) -> list[float]:
        """Of both cards while the call repeats, from the first to the last move of the energy counter."""
        many = max(1, int(0.02 / self.agree(seconds)))
        seen = []
        for _ in range(max(4, int(window / 0.02))):
            for _ in range(many):
                call()
            torch.cuda.synchronize()
            seen.append((time.perf_counter(), pynvml.nvmlDeviceGetTotalEnergyConsumption(self.card)))
        self.clocks.append(pynvml.nvmlDeviceGetClockInfo(self.card, pynvml.NVML_CLOCK_SM))
        moved = [new for old, new in pairwise(seen) if new[1] != old[1]]
        mean = (moved[-1][1] - moved[0][1]) / 1e3 / (moved[-1][0] - moved[0][0]) if len(moved) > 1 else float("nan")
        both = [torch.zeros(1, device="cuda") for _ in range(2)]
        dist.all_gather(both, torch.tensor([mean], device="cuda"))
        return [round(float(one), 1) for one in both]


def graphed(call) -> torch.cuda.CUDAGraph:
    """The call as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        call()
    return graph


class Nccl:
    """NCCL called straight, as engines do, without PyTorch's bookkeeping."""

    class Id(ctypes.Structure):
        """ncclUniqueId."""

        _fields_ = [("bytes", ctypes.c_byte * 128)]

    def __init__(self, rank: int):
        loaded = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libnccl" in line]
        self.lib, mine = ctypes.CDLL(loaded[0]), self.Id()
        if rank == 0:
            assert self.lib.ncclGetUniqueId(ctypes.byref(mine)) == 0
        names = [bytes(mine)]
        dist.broadcast_object_list(names, 0)
        ctypes.memmove(ctypes.byref(mine), names[0], 128)
        self.comm = ctypes.c_void_p()
        assert self.lib.ncclCommInitRank(ctypes.byref(self.comm), 2, mine, rank) == 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Adds x of both cards, in place."""
        at, stream = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        assert self.lib.ncclAllReduce(at, at, ctypes.c_size_t(x.numel()), 9, 0, self.comm, stream) == 0  # bf16, sum
        return x


def sums(pair: Pair) -> tuple[dict, list[torch.Tensor]]:
    """The kinds of all-reduce that work here, by name, and two buffers that all of them take."""

    def by_torch(x: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(x)
        return x

    found, buffers = {"nccl": by_torch}, [torch.empty(LARGEST, device="cuda", dtype=BF16) for _ in range(2)]
    try:
        found["nccl_direct"] = Nccl(pair.rank)
    except Exception as error:
        print("nccl_direct", repr(error), flush=True)
    try:
        import torch.distributed._symmetric_memory as symmetric

        name = dist.group.WORLD.group_name
        shared = [symmetric.empty(LARGEST, dtype=BF16, device=torch.device("cuda", pair.rank)) for _ in range(2)]
        for one in shared:
            symmetric.rendezvous(one, group=name)
        shared[0].normal_()
        torch.ops.symm_mem.one_shot_all_reduce(shared[0][:4096], "sum", name)
        torch.ops.symm_mem.two_shot_all_reduce_(shared[0][:4096], "sum", name)
        torch.cuda.synchronize()
        buffers = shared
        found["one_shot"] = lambda x: torch.ops.symm_mem.one_shot_all_reduce(x, "sum", name)
        found["two_shot"] = lambda x: torch.ops.symm_mem.two_shot_all_reduce_(x, "sum", name)
    except Exception as error:
        print("symmetric memory", repr(error), flush=True)
    return found, buffers


def wrong(add, x: torch.Tensor, rank: int) -> float:
    """The largest distance of a sum from that in float32, in steps of bf16 at the sum's size (0.5 is rounding)."""
    x.copy_(torch.randn(x.numel(), device="cuda", generator=torch.Generator("cuda").manual_seed(rank)))
    parts = [torch.empty_like(x) for _ in range(2)]
    dist.all_gather(parts, x.clone())
    exact = parts[0].float() + parts[1].float()
    got = add(x).float()
    return float(((got - exact).abs() / (exact.abs() * 2**-7).clamp_min(1e-6)).max())
