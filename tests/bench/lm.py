"""How fast the language model is on this processor, with one BLAS thread, as ratios of one run.

A token of one sequence is held against one pass over the weights, a step of sixteen against its matrix products alone:
at most three times as long. The first token of a prompt of 200 comes within 100 ms, and the model is loaded within a
second. Each figure is the median of many, taken in turn. Two BLAS threads beside a busy process are slower than one.

    PYTHONPATH=. .venv/bin/python tests/bench/lm.py

Exit status 1 where a floor is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from course import lm

BATCH, PROMPT, ROUNDS, AWAY = 16, 200, 15, 8  # AWAY: tokens decoded in each round
START = "from course import lm; lm.load()"
FLOORS = {"alone / reading": 3.0, "sixteen / products": 3.0, "first token of 200, ms": 100.0, "start, s": 1.0}


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


class Decoder:
    """Rows that have a prompt of 40 tokens behind them and compute one token a step."""

    def __init__(self, model: lm.LanguageModel, rows: int):
        self.model, self.rows, self.done = model, rows, 40
        blocks = model.config.max_position_embeddings // 16
        self.cache = model.paged_kv(rows * blocks)
        self.tables = np.arange(rows * blocks).reshape(rows, blocks)
        tokens = np.arange(4, 4 + 40 * rows)
        model.forward(tokens, [40] * rows, [0] * rows, self.tables, self.cache)

    def step(self) -> None:
        self.model.forward(
            np.arange(10, 10 + self.rows), [1] * self.rows, [self.done] * self.rows, self.tables, self.cache
        )
        self.done += 1


def measure(model: lm.LanguageModel) -> dict[str, float]:
    """Medians, in seconds, taken in turn."""
    matrices = [part for layer in model.layers for part in (layer.qkv, layer.output, layer.gate_up, layer.down)]
    matrices.append(model.unembedding)
    flat = np.concatenate([matrix.ravel() for matrix in matrices])
    inputs = [np.ones((BATCH, matrix.shape[0]), np.float32) for matrix in matrices]
    one, many = Decoder(model, 1), Decoder(model, BATCH)
    prompt, cache = np.arange(4, 4 + PROMPT), model.paged_kv(13)
    found: dict[str, list[float]] = {name: [] for name in ("reading", "alone", "products", "sixteen", "first token")}
    for _ in range(ROUNDS):
        for _ in range(AWAY):
            found["reading"].append(seconds(flat.sum))
            found["alone"].append(seconds(one.step))
        for _ in range(AWAY):
            found["products"].append(seconds(lambda: [x @ matrix for x, matrix in zip(inputs, matrices, strict=True)]))
            found["sixteen"].append(seconds(many.step))
        found["first token"].append(seconds(lambda: model.forward(prompt, [PROMPT], [0], [range(13)], cache)))
    return {name: float(np.median(times)) for name, times in found.items()}


def main() -> int:
    """Measure, print, and say whether every floor is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--device", help="measure the model on a device of course.gpu, without the ratios")
    asked = parser.parse_args()
    model = lm.load(device=asked.device) if asked.device else lm.load()
    with threadpool_limits(1):
        times = measure(model)
    if asked.device:
        for name in ("alone", "sixteen", "first token"):
            print(f"{name:24}{1e3 * times[name]:9.3f} ms")
        return 0
    starts = [seconds(lambda: subprocess.run([sys.executable, "-c", START], check=True)) for _ in range(5)]
    ratios = {
        "alone / reading": times["alone"] / times["reading"],
        "sixteen / products": times["sixteen"] / times["products"],
        "first token of 200, ms": 1e3 * times["first token"],
        "start, s": float(np.median(starts)),
    }
    for name, value in times.items():
        print(f"{name:24}{1e3 * value:9.3f} ms")
    print(f"{'tokens/s alone':24}{1 / times['alone']:9.0f}\n{'tokens/s of sixteen':24}{BATCH / times['sixteen']:9.0f}")
    for name, value in ratios.items():
        print(f"{name:24}{value:9.2f}   at most {FLOORS[name]:g}{'' if value <= FLOORS[name] else '   MISSED'}")
    if asked.json:
        asked.json.write_text(json.dumps({"seconds": times, "ratios": ratios}, indent=1) + "\n")
    return int(any(value > FLOORS[name] for name, value in ratios.items()))


if __name__ == "__main__":
    sys.exit(main())
