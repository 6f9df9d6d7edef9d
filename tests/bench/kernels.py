"""How fast the kernels of a transformer's step are on this GPU, each against its floor.

PYTHONPATH=. python tests/bench/kernels.py --json kernels.json [--only probe,attention,gemm,prefill,step,peers]

All times are of CUDA graphs, warm, with inputs that are rotated past the second cache. The floor of what reads memory
is the fastest of several read patterns (the probe), of what multiplies a large matrix product by cuBLASLt. Peers
(PyTorch's attention, captured too) are measured where PyTorch is installed; it is no dependency of the course.
"""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench import cards, kernels_attention, kernels_peers, kernels_products, kernels_steps, newest, newest_steps

SECTIONS: dict[str, Callable[[Any], None]] = {
    "probe": cards.probe,
    "nodes": kernels_products.nodes,
    "rows": kernels_products.rows,
    "attention": kernels_attention.attention,
    "ragged": kernels_attention.ragged,
    "newest": newest.newest,
    "clusters": newest.clusters,
    "gemm": kernels_products.gemm,
    "split": newest.split,
    "prefill": kernels_attention.prefill,
    "mixed": kernels_attention.mixed,
    "mixed_steps": kernels_steps.mixed_steps,
    "matrix": cards.matrix,
    "step": kernels_steps.step,
    "merges": newest_steps.merges,
    "ways": newest_steps.ways,
    "drafted": newest_steps.drafted,
    "peers": kernels_peers.peers,
}


def main() -> None:
    """Measure the sections asked for; one that fails is told, and the next goes on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default=",".join(SECTIONS))
    asked = parser.parse_args()
    b = cards.Bench(asked.json)
    for section in asked.only.split(","):
        try:
            SECTIONS[section](b)
        except Exception:
            traceback.print_exc()
        b.q.cupy.get_default_memory_pool().free_all_blocks()
        b.save(f"tests/bench/kernels.py --only {asked.only}")


if __name__ == "__main__":
    main()
