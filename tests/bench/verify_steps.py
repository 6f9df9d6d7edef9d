"""Records decodes and steps that verify drafts, with keys and values read once for all new tokens of a sequence.

PYTHONPATH=. python tests/bench/verify_steps.py --out h200_llama3_8b_verify.json      # about a minute

A recording also has steps with chunks, in which nothing changed: those are taken from another one of the course, and
the provenance says so. `--join` does that to a file that has been recorded without.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from course import gpu
from course.gpu import step_profile
from course.models import model
from course.steptime import files

CHUNKS_OF = "h200_llama3_8b_flash"
CONTEXTS = (256, 1_024, 4_096)
MOST = 512
"""Decodes, at most: with more, only one of the contexts fits into the cache, and a line needs two."""
HOW = "; drafts are the newest tokens of their sequence, whose keys and values each layer reads once for all of them"


def wanted(most_tokens: int) -> list[step_profile.Point]:
    """Decodes of `step_profile.points` at three contexts."""
    points = step_profile.points(most_tokens)
    return [point for point in points if not point[2] and point[0] <= MOST and point[1] in CONTEXTS]


def joined(recording: dict[str, Any], other: dict[str, Any], name: str) -> dict[str, Any]:
    """The decodes of a recording of this file, and the steps with a chunk of another, named in the provenance."""
    own, theirs = recording["points"], other["points"]
    rows = [
        i
        for i, (many, chunk) in enumerate(zip(own["decodes"], own["chunk"], strict=True))
        if not chunk and many <= MOST
    ]
    more = [i for i, chunk in enumerate(theirs["chunk"]) if chunk]
    points = {key: [own[key][i] for i in rows] + [theirs[key][i] for i in more] for key in own}
    its = {key: other["provenance"][key] for key in ("card", "driver", "date", "command", "how")}
    provenance = recording["provenance"] | {"chunks": {"recording": name, **its}}
    return recording | {"provenance": provenance, "points": points}


def main() -> None:
    """Record, and take the chunks of another recording."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache-tokens", type=int, default=638_976)
    parser.add_argument("--limit", type=float, default=150.0)
    parser.add_argument("--join", action="store_true", help="only take the chunks into a file that is there")
    asked = parser.parse_args()
    if not asked.join:
        record(asked.out, asked.cache_tokens, asked.limit)
    found = json.loads(asked.out.read_text(encoding="utf-8"))
    whole = joined(found, files.read("llama_step", CHUNKS_OF), CHUNKS_OF)
    asked.out.write_text(json.dumps(whole, separators=(",", ":")) + "\n", encoding="utf-8")


def record(out: Path, most: int, limit: float) -> None:
    """Decodes and steps that verify, on this GPU."""
    began = time.perf_counter()
    recording = step_profile.record(
        gpu.device("cuda"),
        model("llama-3.1-8b"),
        out,
        command=" ".join(["tests/bench/verify_steps.py", *(Path(part).name for part in sys.argv[1:])]),
        cache_tokens=most,
        wanted=wanted(most),
        verify=list(step_profile.verify_points(most)),
        timed=partial(step_profile.seconds_at, budget=0.06),
        how=HOW,
        limit=limit,
        clocks_every=4,
        told=lambda text: print(text, flush=True),
    )
    print(f"{time.perf_counter() - began:.1f} s: {len(recording['points']['seconds'])} points")


if __name__ == "__main__":
    main()
