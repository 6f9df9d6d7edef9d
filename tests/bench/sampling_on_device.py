"""Drawing tokens on a GPU: are the tokens and their frequencies right, and what does it cost?

    python -m tests.bench.sampling_on_device sampling.json

Times are of launches in a CUDA graph over logits that take turns; where there is PyTorch, its topk is called eagerly.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from course import gpu
from course.gpu.ops import numbers, sampling
from course.gpu.queues import queue

COLUMNS = 128_256
SPREADS = {"peaked": 3.0, "usual": 1.6, "flat": 0.6}
"""Of the logits' normal distribution, at temperature 1: top-p 0.9 leaves some tens, some thousands, or most tokens."""
RULES = {"k 50, p 0.9": (50, 0.9), "p 0.9": (0, 0.9), "all": (0, 1.0), "k 1000, p 0.95": (1000, 0.95)}
FORMS = ((16, 512, 1), (8, 1024, 1), (8, 512, 1), (8, 256, 2), (4, 512, 1), (4, 512, 2), (4, 1024, 1), (2, 1024, 1))
"""Blocks of a cluster, threads of a block, blocks that a multiprocessor should hold."""
ROWS = (1, 4, 8, 16, 32, 64, 128)


class Draws:
    """Launches on logits of one spread, each of `copies` arrays in turn."""

    def __init__(self, on: Any, base: Any, rows: int, copies: int) -> None:
        self.on, self.rows = on, rows
        cupy = on.cupy
        with on.here():
            self.logits = [cupy.roll(base[:rows], 977 * i, 1).copy() for i in range(copies)]
        self.out, self.how = (on.device.to_device(np.zeros(rows, np.int32)) for _ in range(2))

    def seconds(self, rule: tuple[int, float], form: tuple[int, ...] | None) -> tuple[float, float]:
        """Median seconds of a launch, and the mean rounds of the search."""
        draws = np.random.default_rng(5).random(self.rows)
        given = sampling.settings(self.rows, top_k=rule[0], top_p=rule[1], draws=draws, columns=COLUMNS)
        there = self.on.device.to_device(given)
        how: dict[str, Any] = {"cluster": form[0], "threads": form[1], "resident": form[2]} if form else {}
        launches = [sampling.prepare(self.on, one, there, self.out, self.how, **how) for one in self.logits]
        launches[0]()
        self.on.wait()
        graph = self.on.captured(launches, there)
        return float(np.median(self.on.seconds(graph, 7))) / len(launches), float(
            self.on.device.to_numpy(self.how).mean()
        )


def right_tokens(on: Any, base: Any) -> dict[str, Any]:
    """How many tokens are those of the twin, and how far the draws of the others are from an edge of float64's."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(1)
    for name, columns, kind in (("bf16", COLUMNS, "bf16"), ("fp16", 32_000, "fp16"), ("fp32", 20_000, "fp32")):
        rows = 32
        values = rng.normal(size=(rows, columns)) * rng.choice([0.3, 1, 3, 8], (rows, 1))
        values[:4] = rng.choice([-1.0, 0.0, 2.0], (4, columns))  # ties everywhere
        values[4, ::3] = -np.inf
        logits = numbers.encode(values, kind)
        given = sampling.settings(
            rows, temperature=rng.choice([0, 0.5, 1, 2], rows), top_k=rng.choice([0, 1, 40, 300, 3000], rows),
            top_p=rng.choice([0.3, 0.9, 0.99, 1.0], rows), draws=rng.random(rows), columns=columns,
        )  # fmt: skip
        right, chances = sampling.twin(logits, given, kind), sampling.reference(logits, given, kind)
        edges = chances.cumsum(1)
        x, s = on.device.to_device(logits), on.device.to_device(given)
        for form in FORMS[:: 1 if name == "bf16" else 3]:
            out, how = (on.device.to_device(np.full(rows, -7, np.int32)) for _ in range(2))
            sampling.prepare(on, x, s, out, how, kind=kind, cluster=form[0], threads=form[1], resident=form[2])()
            on.wait()
            tokens = on.device.to_numpy(out)
            other = np.flatnonzero(tokens != right)
            apart = [
                float(min(abs(edges[r, max(tokens[r] - 1, 0)] - given[r, 2]), abs(edges[r, tokens[r]] - given[r, 2])))
                if 0 <= tokens[r] < columns and chances[r, tokens[r]] > 0 else 9.0
                for r in other
            ]  # fmt: skip
            found[f"{name} {form}"] = {
                "other": len(other),
                "of": rows,
                "furthest from an edge": max(apart, default=0.0),
            }
    return found


def right_frequencies(on: Any) -> dict[str, Any]:
    """Chi-square a degree of freedom of a million draws against float64, and the tokens drawn that may not be."""
    found = {}
    rng = np.random.default_rng(3)
    for name, columns, spread, rule in (
        ("k 50, p 0.9", COLUMNS, 1.6, (50, 0.9)),
        ("p 0.9, peaked", COLUMNS, 4.0, (0, 0.9)),
        ("p 0.9, flat", 1024, 0.3, (0, 0.9)),
        ("all", 1024, 0.5, (0, 1.0)),
        ("k 700, p 0.8", 2048, 0.3, (700, 0.8)),
    ):
        rows, times = 1_000, 1_000 if columns == 1024 else 200
        logits = np.repeat(numbers.encode(rng.normal(size=(1, columns)) * spread, "bf16"), rows, 0)
        x = on.device.to_device(logits)
        out, how = (on.device.to_device(np.zeros(rows, np.int32)) for _ in range(2))
        base = sampling.settings(rows, top_k=rule[0], top_p=rule[1], columns=columns)
        there = on.device.to_device(base)
        launch = sampling.prepare(on, x, there, out, how)
        counts = np.zeros(columns, np.int64)
        for _ in range(times):
            base[:, 2] = np.minimum(rng.random(rows), 1 - 2.0**-24)
            on.write(there, base)
            launch()
            on.wait()
            counts += np.bincount(on.device.to_numpy(out), minlength=columns)
        chances = sampling.reference(logits[:1], base[:1], "bf16")[0]
        expected = chances * rows * times
        often = expected > 10
        rare = counts[~often].sum(), expected[~often].sum()
        chi = ((counts - expected)[often] ** 2 / expected[often]).sum()
        found[name] = {
            "draws": rows * times, "left": int((chances > 0).sum()), "chi-square": float(chi), "of": int(often.sum()),
            "not allowed": int(counts[chances == 0].sum()), "rare": [float(rare[0]), float(rare[1])],
        }  # fmt: skip
    return found


def others(base: Any) -> dict[str, Any]:
    """Microseconds of PyTorch's topk of 50 and of its sort, called eagerly."""
    try:
        import torch
    except ImportError:
        return {}
    found = {}
    for rows in ROWS:
        x = torch.as_tensor(base[:rows], device="cuda").view(torch.bfloat16)
        for name, call in (
            ("topk", lambda x=x: torch.topk(x, 50)),
            ("sort", lambda x=x: torch.sort(x, descending=True)),
        ):
            call()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            times = []
            for _ in range(15):
                begin.record()
                call()
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) * 1e3)
            found[f"{name} {rows}"] = float(np.median(times))
    return found


def main() -> None:
    """All of it, as JSON and as a table."""
    on = queue(gpu.device("cuda"))
    rng = np.random.default_rng(2)
    found: dict[str, Any] = {"tokens": right_tokens(on, None), "frequencies": right_frequencies(on), "times": {}}
    print(json.dumps({key: found[key] for key in ("tokens", "frequencies")}, indent=1), flush=True)
    forms = (None, *FORMS) if "--forms" in sys.argv else (None,)
    for spread, scale in SPREADS.items():
        base = on.device.to_device(numbers.encode(rng.normal(size=(max(ROWS), COLUMNS)) * scale, "bf16"))
        if spread == "usual":
            found["others"] = others(base)
            print(found["others"], flush=True)
        for rows in ROWS:
            pool = Draws(on, base, rows, min(40, max(4, -(-120_000_000 // (rows * COLUMNS * 2)))))
            rounds = {}
            for rule, limits in RULES.items():
                for form in forms:
                    if form and rows >= 32 and form[0] > 8:
                        continue
                    seconds, rounds[rule] = pool.seconds(limits, form)
                    found["times"][f"{spread} | {rule} | {rows} | {form}"] = [seconds * 1e6, rounds[rule]]
            for rule in RULES:
                said = " ".join(
                    f"{key.split(' | ')[3]} {us:.1f}"
                    for key, (us, _) in found["times"].items()
                    if key.startswith(f"{spread} | {rule} | {rows} | ")
                )
                print(f"{spread} | {rule} | {rows} | {said} | {rounds[rule]:.1f}", flush=True)
    with open(sys.argv[1], "w") as file:
        json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
