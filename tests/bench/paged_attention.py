"""Records what lab 09 launches on this GPU: attention over blocks that lie together, and over scattered ones.

PYTHONPATH=. python tests/bench/paged_attention.py --out h200_paged_attention.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from course import gpu
from course.gpu import record
from course.gpu.one_layer import on_a_gpu
from course.gpu.ops import read_probe
from course.gpu.queues import queue
from course.gpu.timing import measure
from course.lessons.lab09.attention import BATCHES, CONTEXTS, HOW, KV_HEADS, SCATTERED

ROUNDS, LAUNCHES = 5, 50


def main() -> None:
    """Launch both orders in turn at every setting of the sliders, and write the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    device = gpu.device("cuda")
    work, contexts = queue(device), {}
    words = device.to_device(np.zeros(28_672 * 4_096 // 2, np.uint32))
    probe = read_probe.prepare(work, words, device.empty((32 * work.multiprocessors,), np.uint32))
    for context in CONTEXTS:
        found: dict[str, list[float]] = {how: [] for how in HOW}
        for batch in BATCHES:
            launches = {how: on_a_gpu(work, context, KV_HEADS, batch, how == SCATTERED) for how in HOW}
            times: dict[str, list[float]] = {how: [] for how in HOW}
            for _ in range(ROUNDS):
                for how, launch in launches.items():
                    times[how].append(measure(work, launch, launches=LAUNCHES, before=probe).seconds)
            for how in HOW:
                found[how].append(float(f"{np.median(times[how]):.4g}"))
        contexts[str(context)] = found
        print(context, found, flush=True)
    how_measured = (
        "events around each launch, warm, median of five medians of 50, the two in turn; a matrix of 235 MB is read "
        "between two launches"
    )
    command = f"tests/bench/paged_attention.py --out {asked.out.name}"
    recorded = {
        "kernel": "paged_attention",
        "provenance": record.provenance(device, command) | {"how": how_measured},
        "kv_bytes_per_token": 4_096,
        "batches": BATCHES,
        "contexts": contexts,
    }
    asked.out.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
