"""Serve workloads with one release of vLLM: python -m tools.vllm_check.drive FILE KIND...

Runs in the environment that `fetch` makes, with that release on the path. Writes a JSON object to the file: for each
kind the runs of its workloads.
"""

import json
import sys
from pathlib import Path

from tools.vllm_check import stand_ins
from tools.vllm_check.workloads import COUNTS, make


def main() -> None:
    """Serve the kinds named on the command line."""
    stand_ins.install()
    from tools.vllm_check.engine import Engine

    to, *kinds = sys.argv[1:]
    runs = {kind: [Engine(make(kind, seed)).serve() for seed in range(COUNTS[kind])] for kind in kinds}
    Path(to).write_text(json.dumps(runs))


if __name__ == "__main__":
    main()
