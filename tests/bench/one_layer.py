"""Records what lab 02 launches on this GPU: the read of a matrix, its products and a layer's attention.

PYTHONPATH=. python tests/bench/one_layer.py --out one_layer.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from course import gpu
from course.gpu import record
from course.lessons.lab02.launch import CONTROLS
from course.lessons.lab02.on_device import BATCHES, LAUNCHES, WHAT, Bench


def main() -> None:
    """Launch every setting of the sliders and write the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    device = gpu.device("cuda")
    bench, contexts = Bench(device, 1.0), {}
    for context in CONTROLS[1].stops:
        found = bench(BATCHES[0], int(context))
        if not found.times:
            raise SystemExit(" ".join(found.warnings))
        contexts[str(int(context))] = {
            what: [float(f"{found.times[what][batch]:.4g}") for batch in BATCHES] for what in WHAT
        }
        print(context, contexts[str(int(context))], flush=True)
    how = f"events around each launch, warm, median of {LAUNCHES}; the matrix is read between two launches of attention"
    recorded = {
        "kernel": "one_layer",
        "provenance": record.provenance(device, f"tests/bench/one_layer.py --out {asked.out.name}") | {"how": how},
        "matrix_bytes": found.matrix_bytes,
        "kv_bytes_per_token": found.kv_bytes // int(context),
        "batches": BATCHES,
        "contexts": contexts,
    }
    asked.out.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
