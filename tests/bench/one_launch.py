"""Records what lab 06 launches on this GPU: product and attention of decodes and of a prompt, apart and together.

PYTHONPATH=. python tests/bench/one_launch.py --out one_launch.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from course import gpu
from course.gpu import record
from course.lessons.lab06.on_device import LAUNCHES, Bench

DECODES, CHUNKS = (16, 32, 64, 128), (64, 128, 256, 512)
"""The stops of the sliders."""


def main() -> None:
    """Launch every setting of the sliders and write the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    device = gpu.device("cuda")
    bench, found = Bench(device, 1.0), {}
    for decodes in DECODES:
        for chunk in CHUNKS:
            here = bench(decodes, chunk)
            if not here.times:
                raise SystemExit(" ".join(here.warnings))
            found[f"{decodes} {chunk}"] = {
                what: {way: float(f"{value:.4g}") for way, value in ways.items()} for what, ways in here.times.items()
            }
            print(decodes, chunk, found[f"{decodes} {chunk}"], flush=True)
    how = f"events around each launch, warm, median of {LAUNCHES}"
    recorded = {
        "kernel": "one_launch",
        "provenance": record.provenance(device, f"tests/bench/one_launch.py --out {asked.out.name}") | {"how": how},
        "times": found,
    }
    asked.out.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
