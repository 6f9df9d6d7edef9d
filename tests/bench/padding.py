"""Records what lab 11 launches on this GPU: attention of prompts and of decodes, and whole steps, in every layout.

PYTHONPATH=. python tests/bench/padding.py --out h200_padding.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from course import gpu
from course.gpu import record
from course.gpu.queues import queue
from course.gpu.timing import measure
from course.gpu.transformer import Llama, Shape, Step
from course.lessons.lab11 import batch
from course.lessons.lab11.batch import LAYOUTS, MEAN, MEANS, MIXES, REQUESTS, SPREADS
from course.lessons.lab11.on_device import BLOCK, LAUNCHES, LEAST, Card, filler
from course.models import model

DRAWS = 5
STEPS = 3
"""Whole steps of which the median is taken."""
PROMPTS, DECODES, STEP, DECODE_STEP = KINDS = ("prompts", "decodes", "step", "decode step")


def key(mix: str, spread: float, mean: int, seed: int) -> str:
    """A setting, as the file names it."""
    return f"{MIXES.index(mix)} {spread:g} {mean} {seed}"


def settings() -> list[tuple[str, float, int, int]]:
    """Mix, spread, mean and draw: all of the sliders, and four more draws of one of them."""
    found = [(mix, spread, mean, batch.SEED) for mean in MEANS for mix in MIXES for spread in SPREADS]
    return found + [(batch.SPREAD, 1.0, MEAN, seed) for seed in range(DRAWS) if seed != batch.SEED]


class Attention:
    """Launches the attention of one layer, of the lengths of a setting."""

    def __init__(self, work: Any) -> None:
        rows = max(
            batch.tokens(batch.launches(batch.lengths(*one), layout)) for one in settings() for layout in LAYOUTS
        )
        self.work, self.card, self.before = work, Card(work, rows), filler(work)

    def seconds(self, kind: str, groups: Sequence[Sequence[int]]) -> float:
        launch = (self.card.prompts if kind == PROMPTS else self.card.decodes)(groups)
        few = {"launches": LAUNCHES, "max_seconds": 0.1, "warm": 2, "least": LEAST}
        return measure(self.work, launch, before=self.before, **few).seconds


class Steps:
    """Runs whole steps of Llama-3.1-8B with random weights, of the lengths of a setting."""

    def __init__(self, work: Any, rows: int) -> None:
        shape = Shape.of(model("llama-3.1-8b"))
        self.work, self.vocabulary = work, shape.vocabulary
        self.llama = Llama(
            work, shape, blocks=-(-rows // BLOCK) + 2 * REQUESTS, max_tokens=rows, max_sequences=REQUESTS,
            max_positions=4_096,
        )  # fmt: skip
        self.llama.fill_cache()
        self.order = np.random.default_rng(0).permutation(self.llama.blocks)

    def seconds(self, kind: str, groups: Sequence[Sequence[int]]) -> float:
        return sum(self._one(kind, list(group)) for group in groups)

    def _one(self, kind: str, group: list[int]) -> float:
        how: Any = {"chunks": [(n, 0) for n in group]} if kind == STEP else {"lengths": group}
        step = Step(self.llama, **how)
        ends = np.cumsum([-(-n // BLOCK) for n in group]).tolist()
        tables = [self.order[a:b].tolist() for a, b in zip([0, *ends], ends, strict=False)]
        step.write(np.random.default_rng(0).integers(0, self.vocabulary, step.tokens), tables)
        step.run()
        few = {"launches": STEPS if kind == STEP else LAUNCHES, "max_seconds": 60, "warm": 1}
        return measure(self.work, step.captured(), **few).seconds


def main() -> None:
    """Launch everything and write the medians, after each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=150, help="after which no further setting begins")
    asked = parser.parse_args()
    device, began = gpu.device("cuda"), time.monotonic()
    work, found = queue(device), {kind: {} for kind in KINDS}
    how = (
        "the launches of a layout as one CUDA graph, events around each replay, warm; attention of one layer: median "
        f"of {LEAST} to {LAUNCHES}, a matrix of 235 MB is read before each; whole steps: a graph for each launch, "
        f"median of {STEPS}, of decodes {LAUNCHES}; random weights, tokens and KV, shuffled blocks, no sampling"
    )
    recorded = {
        "kernel": "padding",
        "provenance": record.provenance(device, f"tests/bench/padding.py --out {asked.out.name}") | {"how": how},
        "layouts": LAYOUTS,
        "key": "mix, spread, mean, draw",
        **found,
    }

    def launch(kind: str, bench: Attention | Steps, setting: tuple[str, float, int, int]) -> None:
        if time.monotonic() - began > asked.seconds:
            print("no time for", kind, setting, flush=True)
            return
        prompts, here = batch.lengths(*setting), []
        for layout in LAYOUTS:
            if layout == batch.ALONE and kind in (DECODES, DECODE_STEP):
                continue  # nobody decodes so
            here.append(float(f"{bench.seconds(kind, batch.launches(prompts, layout)):.4g}"))
        found[kind][key(*setting)] = here
        print(f"{time.monotonic() - began:5.1f}", kind, key(*setting), here, flush=True)
        asked.out.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")

    at_mean = [one for one in settings() if one[2] == MEAN]
    alone = Attention(work)
    for kind in (PROMPTS, DECODES):
        for setting in sorted(settings(), key=lambda one: one not in at_mean):
            launch(kind, alone, setting)
    del alone
    work.cupy.get_default_memory_pool().free_all_blocks()
    rows = max(batch.tokens(batch.launches(batch.lengths(*one), batch.RECTANGLE)) for one in at_mean)
    steps = Steps(work, rows)
    for kind in (DECODE_STEP, STEP):
        for setting in at_mean:
            launch(kind, steps, setting)


if __name__ == "__main__":
    main()
