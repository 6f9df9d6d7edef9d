"""What the sections of `kernels.py` share: the device and what was measured, its floors, keys and values of 2 GiB."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from course import gpu
from course.gpu import record
from course.gpu.ops import fill, product, read_probe
from course.gpu.queues import queue

GIB = 1 << 30


class Bench:
    """The device, and what was measured so far."""

    def __init__(self, out: Path | None) -> None:
        self.q: Any = queue(gpu.device("cuda"))
        self.out, self.found = out, {}
        self.bandwidth, self.flops = 3.1e12, 750e12
        self.began = time.perf_counter()

    def say(self, *words: Any) -> None:
        print(f"{time.perf_counter() - self.began:6.1f}", *words, flush=True)

    def keep(self, section: str, **row: Any) -> None:
        self.found.setdefault(section, []).append(
            {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}
        )
        self.say(section, " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()))

    def save(self, command: str) -> None:
        if self.out:
            whole = {"provenance": record.provenance(self.q.device, command), **self.found}
            self.out.write_text(json.dumps(whole, indent=1) + "\n")

    def random(self, *shape: int, kind: str = "bf16", bound: float = 1.7, seed: int = 0) -> Any:
        array = self.q.device.empty(shape, {"bf16": np.uint16, "fp16": np.float16, "fp32": np.float32}[kind])
        fill.prepare(self.q, array, bound=bound, seed=seed, kind=kind)()
        self.q.wait()
        return array

    def each(self, launches: list, repeats: int = 5) -> float:
        """Seconds a launch, of these in one graph."""
        launches[0]()
        return float(np.median(self.q.seconds(self.q.captured(launches), repeats=repeats, warm=2))) / len(launches)


def probe(b: Bench) -> None:
    data = b.q.cupy.empty(2 * GIB // 4, np.uint32)
    fill.prepare(b.q, data.view(np.uint16), bound=1.0)()
    b.q.wait()
    best = 0.0
    for pattern, name in enumerate(read_probe.PATTERNS):
        for blocks in (132 * 2, 132 * 4, 132 * 8, 132 * 32, 132 * 128):
            out = b.q.device.empty(blocks, np.uint32)
            seconds = b.each([read_probe.prepare(b.q, data, out, pattern=pattern)] * 2, repeats=7)
            best = max(best, 2 * GIB / seconds)
            b.keep("probe", pattern=name, blocks=blocks, tb_s=2 * GIB / seconds / 1e12)
    b.bandwidth = best
    b.found["bandwidth"] = best


def matrix(b: Bench) -> None:
    x, w = b.random(8192, 8192), b.random(8192, 8192, seed=1)
    out = b.q.device.empty((8192, 8192), np.uint16)
    seconds = b.each([product.prepare(b.q, x, w, out)] * 5)
    b.flops = 2 * 8192**3 / seconds
    b.found["flops"] = b.flops
    b.keep("matrix", size=8192, tflops=b.flops / 1e12)


class Caches:
    """Keys and values of 2 GiB, and tables of shuffled blocks that walk through them."""

    def __init__(self, b: Bench, kv_heads: int, width: int = 128) -> None:
        self.b, self.blocks = b, GIB // (kv_heads * 16 * width * 2)
        self.k, self.v = (b.random(self.blocks, kv_heads, 16, width, seed=s) for s in (0, 1))
        self.order = np.random.default_rng(0).permutation(self.blocks).astype(np.int32)

    def tables(self, lengths: np.ndarray, most: int = 8) -> list[Any]:
        need = -(-lengths // 16)
        total = int(need.sum())
        found = []
        for start in range(0, min(most * total, self.blocks - total + 1), total):
            table, at = np.zeros((len(lengths), int(need.max())), np.int32), start
            for s, many in enumerate(need):
                table[s, :many] = self.order[at : at + many]
                at += many
            found.append(self.b.q.device.to_device(table))
        return found
