"""Records decodes and steps that verify drafts, with keys and values read once for all new tokens of a sequence.

PYTHONPATH=. python tests/bench/verify_steps.py --out h200_llama3_8b_verify.json      # about a minute

Chunks are a few, by the course's own kernels, since a recording has steps of chunks alone: for prompts take another.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from course import gpu
from course.gpu import step_profile
from course.models import model

CHUNKS = (16, 128, 512, 2_048)
CONTEXTS = (256, 1_024, 4_096)
HOW = "; drafts are the newest tokens of their sequence, whose keys and values each layer reads once for all of them"


def wanted(most_tokens: int) -> list[step_profile.Point]:
    """Decodes of `step_profile.points` at three contexts, and a few chunks."""
    points = step_profile.points(most_tokens)
    decodes = [point for point in points if not point[2] and point[1] in CONTEXTS]
    return decodes + [(0, 0, chunk, 0) for chunk in CHUNKS]


def main() -> None:
    """Record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache-tokens", type=int, default=638_976)
    parser.add_argument("--limit", type=float, default=150.0)
    asked = parser.parse_args()
    began, most = time.perf_counter(), asked.cache_tokens
    recording = step_profile.record(
        gpu.device("cuda"),
        model("llama-3.1-8b"),
        asked.out,
        command=" ".join(["tests/bench/verify_steps.py", *(Path(part).name for part in sys.argv[1:])]),
        cache_tokens=most,
        wanted=wanted(most),
        verify=list(step_profile.verify_points(most)),
        timed=partial(step_profile.seconds_at, budget=0.06),
        how=HOW,
        limit=asked.limit,
        clocks_every=4,
        told=lambda text: print(text, flush=True),
    )
    print(f"{time.perf_counter() - began:.1f} s: {len(recording['points']['seconds'])} points")


if __name__ == "__main__":
    main()
