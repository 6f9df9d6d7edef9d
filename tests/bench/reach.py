"""Records where the second cache of this GPU ends, and what scattered reads cost: what lab 11, deeper, shows.

PYTHONPATH=. python tests/bench/reach.py --out h200_reach.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from course import gpu
from course.gpu import record
from course.gpu.ops import gather, read_probe
from course.gpu.queues import queue
from course.gpu.timing import measure

MIB = 1 << 20
SIZES = (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 512, 1_024, 4_096)
"""MiB that are read again and again."""
PIECES = (256, 1_024, 4_096, 16_384, 65_536)
"""Bytes that lie together."""
TABLES = (256, 1_024, 4_096, 16_384, 65_536)
"""MiB of the table from which scattered pieces are read."""
READ = 128 * MIB
FEW = {"launches": 15, "max_seconds": 0.1, "warm": 2, "least": 5}


def main() -> None:
    """Read, and write the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    device = gpu.device("cuda")
    work, rng = queue(device), np.random.default_rng(0)
    data = work.cupy.empty(max(SIZES) * MIB // 4, np.uint32)
    data.fill(7)
    again = {}
    for size in SIZES:
        part, found = data[: size * MIB // 4], []
        for blocks in (1, 2, 4, 8):
            launch = read_probe.prepare(work, part, work.device.empty(blocks * work.multiprocessors, np.uint32))
            ten = work.captured([launch] * 10)
            found.append(measure(work, ten, **FEW).seconds / 10)
        again[size] = float(f"{size * MIB / min(found):.4g}")
        print(size, "MiB again and again", again[size], flush=True)
    del data
    work.cupy.get_default_memory_pool().free_all_blocks()
    scattered: dict[int, dict[int, list[float]]] = {}
    for size in TABLES:
        table = work.cupy.empty(size * MIB // 2, np.uint16)
        table.fill(7)
        scattered[size] = {}
        for piece in PIECES:
            columns, rows = piece // 2, READ // piece
            there, out = table.reshape(-1, columns), work.device.empty((rows, columns), np.uint16)
            pair = []
            for ids in (np.arange(rows), rng.integers(0, len(there), rows)):
                launch = gather.prepare(work, there, work.device.to_device(ids.astype(np.int32)), out)
                pair.append(float(f"{READ / measure(work, launch, **FEW).seconds:.4g}"))
            scattered[size][piece] = pair
            print(size, "MiB, pieces of", piece, pair, flush=True)
        del table, there
        work.cupy.get_default_memory_pool().free_all_blocks()
    how = (
        "bytes/s read; again and again: ten reads of the same memory in one CUDA graph, the fastest of four grids; "
        "scattered: 128 MiB in pieces, in order and at random, copied to one place, so as many bytes are written; "
        "warm, medians of 5 to 15"
    )
    recorded = {
        "kernel": "reach",
        "provenance": record.provenance(device, f"tests/bench/reach.py --out {asked.out.name}") | {"how": how},
        "again": again,
        "scattered": scattered,
    }
    asked.out.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
