"""Two cards of one host: an all-reduce alone, and a decode step of Llama's layers on one card and in two halves.

For each size of an all-reduce: NCCL in a CUDA graph, NCCL one call at a time, and PyTorch's symmetric memory. For each
batch: the layers on one card (each of the two computes the same, as replicas would) and in halves, with each kind of
all-reduce and with none, in a CUDA graph and without. Watts are NVML's energy counter over about a second.
Weights, KV and inputs are random; sums and halves are checked against float32 and against one card.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pynvml
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F

from tools.gpu.pair import BF16, Pair, graphed, sums, three, wrong

TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
DECODES = (1, 8, 16, 32, 64, 128, 256)
PROMPTS = (512, 2048)
CONTEXT = 1_024
MODELS = {"llama-3.1-8b": (32, 4096, 14336, 32, 8, 128), "llama-3-70b": (8, 8192, 28672, 64, 8, 128)}
"""Layers that are timed (70B has 80), hidden, inner, heads, KV heads, width."""


def all_reduces(pair: Pair, kinds: dict, buffer: torch.Tensor) -> list[dict]:
    """Rows of an all-reduce alone: bytes, kind, in a graph or not, microseconds."""
    rows: list[dict] = []
    for tokens in TOKENS:
        x = buffer[: tokens * 4096]
        for name, add in kinds.items():
            if pair.over():
                return rows
            row: dict[str, Any] = {"bytes": 2 * x.numel(), "kind": name, "wrong": round(wrong(add, x, pair.rank), 3)}
            x.zero_()

            def many(add=add, x=x, times=20):
                return [add(x) for _ in range(times)]

            graph = graphed(many)
            row["in_graph_us"] = three(pair.in_a_row(graph.replay, 12, 20))
            row["in_a_row_us"] = three(pair.in_a_row(many, 12, 20))
            row["one_by_one_us"] = three(pair.one_by_one(partial(many, times=1), 15))
            if name in ("nccl", "one_shot") and tokens in (1, 64, 2048):
                row["watts"] = pair.watts(graph.replay, 20e-6 * row["in_graph_us"][0], 0.6)
            rows.append(row)
            del graph
    return rows


class Layers:
    """A few of a model's layers with random weights, whole or this card's half of the same."""

    def __init__(self, name: str, rank: int):
        self.count, self.d, self.f, self.heads, self.kv_heads, self.width = MODELS[name]
        draw = torch.Generator("cuda").manual_seed(14)
        self.whole: list[tuple] = []
        self.half: list[tuple] = []
        for _ in range(self.count):
            q, kv = self.heads * self.width, self.kv_heads * self.width
            d, f = self.d, self.f
            shapes = (q, d), (kv, d), (kv, d), (d, q), (f, d), (f, d), (d, f)
            drawn = [torch.randn(shape, device="cuda", dtype=BF16, generator=draw) * 0.02 for shape in shapes]
            mine = [one.chunk(2, dim)[rank] for one, dim in zip(drawn, (0, 0, 0, 1, 0, 0, 1), strict=True)]
            for parts, into in ((drawn, self.whole), (mine, self.half)):
                into.append((torch.cat(parts[:3]), parts[3].contiguous(), torch.cat(parts[4:6]), parts[6].contiguous()))
            del drawn, mine
        self.gain = torch.ones(self.d, device="cuda", dtype=BF16)
        shape = (2, 256, self.kv_heads, CONTEXT, self.width)
        cache = [torch.randn(shape, device="cuda", dtype=BF16, generator=draw) for _ in range(3)]
        self.kv = {1: cache, 2: [one.chunk(2, 2)[rank].contiguous() for one in cache]}

    def step(self, x: torch.Tensor, tp: int, decode: bool, add, buffers) -> torch.Tensor:
        """All the layers over x (tokens, hidden): decodes over CONTEXT tokens each, or one prompt."""
        n, heads, kv_heads, f = len(x), self.heads // tp, self.kv_heads // tp, self.f // tp
        q_width = heads * self.width
        outs = [one[: n * self.d].view(n, self.d) for one in buffers]
        for i, (qkv, o, up, down) in enumerate(self.whole if tp == 1 else self.half):
            a = F.linear(F.rms_norm(x, (self.d,), self.gain), qkv)
            fresh = a[:, q_width:].view(n, 2, kv_heads, self.width)
            if decode:
                kv = self.kv[tp][i % 3][:, :n]
                kv[:, :, :, -1].copy_(fresh.transpose(0, 1))
                q = a[:, :q_width].view(n, kv_heads, heads // kv_heads, self.width)
                a = F.scaled_dot_product_attention(q, kv[0], kv[1]).reshape(n, q_width)
            else:
                q = a[:, :q_width].view(1, n, heads, self.width).transpose(1, 2)
                k, v = (fresh[None, :, j].transpose(1, 2) for j in range(2))
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                a = a.transpose(1, 2).reshape(n, q_width)
            x = x + add(torch.mm(a, o.t(), out=outs[0]))
            h = F.linear(F.rms_norm(x, (self.d,), self.gain), up)
            x = x + add(torch.mm(F.silu(h[:, :f]) * h[:, f:], down.t(), out=outs[1]))
        return x


def steps(pair: Pair, name: str, kinds: dict, buffers, plain: tuple[int, ...], window: float) -> list[dict]:
    """Rows of a step of the layers, by batch, cards, all-reduce and graphs. plain: the batches without graphs too."""
    layers, rows = Layers(name, pair.rank), list[dict]()
    forms = [(1, "none"), (2, "none"), *((2, kind) for kind in kinds)]
    for tokens in (*DECODES, *PROMPTS):
        decode = tokens in DECODES
        draw = torch.Generator("cuda").manual_seed(tokens)
        x = torch.randn(tokens, layers.d, device="cuda", dtype=BF16, generator=draw)
        alone = layers.step(x, 1, decode, lambda y: y, buffers)
        for tp, kind in forms:
            if pair.over():
                return rows
            add = kinds.get(kind, lambda y: y)
            row = {"model": name, "layers": layers.count, "tp": tp, "all_reduce": kind, "tokens": tokens}
            row["context"] = CONTEXT if decode else 0
            if kind != "none":
                apart = (layers.step(x, tp, decode, add, buffers) - alone).float().norm() / (alone - x).float().norm()
                row["differs"] = float(f"{float(apart):.3g}")

            def call(tp=tp, add=add, x=x, decode=decode):
                return layers.step(x, tp, decode, add, buffers)

            graph = graphed(call)
            found = three(pair.in_a_row(graph.replay, 15, layers.count))
            used = pair.watts(graph.replay, found[0] * layers.count * 1e-6, window) if window else []
            rows.append(row | {"graphs": True, "us_a_layer": found} | ({"watts": used} if used else {}))
            del graph
            if tokens in plain:
                found = three(pair.in_a_row(call, 12, layers.count))
                synced = three(pair.one_by_one(call, 10, layers.count))
                used = pair.watts(call, found[0] * layers.count * 1e-6, window) if window else []
                more = {"graphs": False, "us_a_layer": found, "us_a_layer_synchronised": synced}
                rows.append(row | more | ({"watts": used} if used else {}))
        if pair.rank == 0:
            print(f"{time.perf_counter() - pair.began:6.1f} s {name} {tokens}", flush=True)
    return rows


def provenance(pair: Pair, command: str) -> dict:
    """What is needed to believe the numbers."""
    try:
        topology = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        topology = ""
    links = next((word for word in topology.split() if word.startswith("NV") and word[2:].isdigit()), "")
    driver = pynvml.nvmlSystemGetDriverVersion()
    return {
        "card": torch.cuda.get_device_name(), "cards": 2, "link": links, "driver": driver, "torch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())), "multicast": "off", "python": sys.version.split()[0],
        "date": datetime.date.today().isoformat(), "command": command,
        "power_limit_w": pynvml.nvmlDeviceGetPowerManagementLimit(pair.card) / 1e3,
    }  # fmt: skip


def work(rank: int, out: str, limit: float, command: str) -> None:
    """One of the two processes."""
    pair = Pair(rank, limit)
    for other in ("math", "mem_efficient", "cudnn"):
        getattr(torch.backends.cuda, f"enable_{other}_sdp")(False)
    found: dict = {"kernel": "two_cards", "provenance": provenance(pair, command)}

    def keep(**more) -> None:
        found.update(more)
        if rank == 0:
            clocks = {"sm_mhz": [min(pair.clocks), max(pair.clocks)]} if pair.clocks else {}
            found["provenance"] |= {"clocks": clocks, "seconds": round(time.perf_counter() - pair.began, 1)}
            Path(out).write_text(json.dumps(found) + "\n")

    with torch.inference_mode():
        keep(idle_watts=pair.watts(lambda: time.sleep(0.02), 0.02, 1.5))
        kinds, buffers = sums(pair)
        keep(all_reduce=all_reduces(pair, kinds, buffers[0]))
        if rank == 0:
            print(f"{time.perf_counter() - pair.began:6.1f} s all-reduces", flush=True)
        chosen = {name: kinds[name] for name in ("nccl", "nccl_direct", "one_shot") if name in kinds}
        keep(steps=steps(pair, "llama-3.1-8b", chosen, buffers, DECODES, 0.8))
        few = {name: kinds[name] for name in ("nccl", "one_shot") if name in kinds}
        torch.cuda.empty_cache()
        keep(steps=found["steps"] + steps(pair, "llama-3-70b", few, buffers, (), 0.0))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--limit", type=float, default=190, help="seconds after which no further point starts")
    asked = parser.parse_args()
    line = f"tools/gpu/two_cards.py --out {Path(asked.out).name} --limit {asked.limit:.0f}"
    mp.spawn(work, args=(asked.out, asked.limit, line), nprocs=2)
