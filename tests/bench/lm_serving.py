"""The language model serves for real; four constants fitted to one run predict the others.

The fitted run and five others have other questions and other arrivals. Each of the five is served again in the
simulator with the fitted constants, and p50 and p95 of TTFT, TPOT and E2E are held against the measured ones: within
10% in the median of the five is asked for.

    PYTHONPATH=. .venv/bin/python tests/bench/lm_serving.py

Exit status 1 where it is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from course import calibration, lm, policies, serve
from course.lm.processor import processor, spec
from course.lm.text import exchanges

RUNS, GOAL = 5, 0.10
METRICS, PERCENTILES = ("ttft", "tpot", "e2e"), (50, 95)


def questions(seed: int, count: int, rate: float) -> lm.Questions:
    """Prompts of the serving mix, and when they come."""
    drawn = exchanges(seed)
    return lm.Questions.poisson([next(drawn).turns for _ in range(count)], rate, seed)


def figures(run: object) -> dict[str, float]:
    """p50 and p95 of each metric, in seconds."""
    return {f"{m} p{p}": float(np.nanpercentile(getattr(run, m), p)) for m in METRICS for p in PERCENTILES}


def main() -> int:
    """Measure, fit, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=150, help="questions of a run")
    parser.add_argument("--rate", type=float, default=20.0, help="questions a second")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    asked = parser.parse_args()
    model, policy = lm.load(), policies.Continuous(16, 128)
    lm.serve_live(questions(100, 20, asked.rate), policy, model)  # warms up
    card = processor(model)
    runs = [lm.serve_live(questions(seed, asked.count, asked.rate), policy, model) for seed in range(RUNS + 1)]
    began = time.perf_counter()
    # The products are in float32, twice the bytes that are stored.
    fit = calibration.fit_run(runs[0], spec(), card, weight_bytes=2 * spec().step_weight_bytes)
    print(f"load average {os.getloadavg()[0]:.1f}; the fit took {time.perf_counter() - began:.0f} s: {fit!r}")
    for name, constant in fit.constants.items():
        print(f"  {name:18} {constant.seconds:.3e}, measured products say {constant.sheet:.3e} {constant.unit}")
    worst, rows = [], []
    for run in runs[1:]:
        left = iter(run.seconds)
        same = serve(run.workload, policy, lambda step, left=left: next(left), run.cache)
        worst.append(max(float(np.nanmax(np.abs(getattr(same, m) - getattr(run, m)))) for m in METRICS))
        there, here = figures(run), figures(serve(run.workload, policy, fit.step_time, run.cache))
        busy = float(run.steps.seconds.sum() / run.makespan)
        rows.append({name: (there[name], here[name], here[name] / there[name] - 1) for name in there} | {"busy": busy})
    print(f"fed its own seconds, the simulator is off by at most {max(worst):.1e} s")
    medians = {}
    for name in figures(runs[0]):
        off = [row[name][2] for row in rows]
        medians[name] = float(np.median(np.abs(off)))
        measured = ", ".join(f"{1e3 * row[name][0]:.1f}" for row in rows)
        print(
            f"{name:10} median of |errors| {medians[name]:6.1%}   "
            f"errors {', '.join(f'{e:+.1%}' for e in off)}   measured {measured} ms"
        )
    print("busy " + ", ".join(f"{row['busy']:.0%}" for row in rows))
    if asked.json:
        asked.json.write_text(json.dumps({"fit": fit.as_dict(), "runs": rows, "medians": medians}, indent=1) + "\n")
    missed = [name for name, off in medians.items() if off > GOAL]
    print("missed: " + ", ".join(missed) if missed else "every median is within 10%")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
