"""The decode-step kernel on the device at hand: agreement, launches, batches, both loops; with --profile the recording.

PYTHONPATH=. python tests/bench/kernel.py                                   # a few seconds
PYTHONPATH=. python tests/bench/kernel.py --device cuda --json kernel.json --profile h100_decode_step.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from course import gpu
from course.gpu import bench, record
from course.gpu.sweep import fixed_batches
from tools.gpu import decode_step

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
COMMAND = [sys.executable, "-c", "from course.cli import main; main()", "bench"]


def agreement(device: gpu.Device) -> dict[str, float]:
    """The largest relative error against float64, and the largest share of what float32 may have."""
    worst = share = 0.0
    cases = 0
    for threads in (2**k for k in range(11)):
        for work in (1, 37, 16_384, 16_389):
            step = gpu.DecodeStep(device, work, threads, 70)
            error = float(np.abs(step.result(70) / gpu.reference(70, work) - 1).max())
            worst, share = max(worst, error), max(share, error / gpu.tolerance(work, threads))
            cases += 1
    return {"cases": cases, "largest_relative_error": worst, "share_of_tolerance": share}


def launches(device: gpu.Device) -> dict[str, float | None]:
    """A launch in four ways: an empty kernel and a step, one by one and queued; and in a graph."""
    step = gpu.DecodeStep(device)
    many = 1_000 if device.is_gpu else 20
    found: dict[str, float | None] = {}
    for name, launch in (("empty", step.prepare_empty(1)), ("step_16", step.prepare(16))):
        found[f"{name}_one_by_one"] = gpu.measure(device, launch, launches=many).seconds
        found[f"{name}_queued"] = device.pace(launch, many)
        found[f"{name}_graph_node"] = device.replayed(launch) if device.kind == "cuda" else None
    return found


def loops(device: gpu.Device, works, seeds) -> list[dict[str, float | str]]:
    """TTFT of both loops for windows of 6, 2 and 0 ms: means over seeds, in ms."""
    rows = []
    for work in works:
        live = gpu.LiveStep(gpu.DecodeStep(device, work))
        for loop in bench.LOOPS:
            for window in (6.0, 2.0, 0.0):
                began, found, gaps = time.perf_counter(), [], []
                for seed in seeds:
                    live.gaps.clear()
                    asked = bench.Settings(loop=loop, window_ms=window, work=work, seed=seed)
                    outcome = bench.run(asked, live)
                    found.append(bench.summary(outcome))
                    gaps += live.gaps[1:]
                row = {"work": work, "loop": loop, "window_ms": window, "runs": len(found)}
                for key in ("ttft_mean", "ttft_p95", "e2e_mean", "e2e_p95", "step_median"):
                    row[f"{key}_ms"] = 1e3 * float(np.mean([one[key] for one in found]))
                for key in ("mean_batch", "tokens_per_second"):
                    row[key] = float(np.mean([one[key] for one in found]))
                row |= {"gap_median_ms": 1e3 * float(np.median(gaps)), "gap_max_ms": 1e3 * float(np.max(gaps))}
                row["seconds_a_run"] = (time.perf_counter() - began) / len(found)
                rows.append({key: round(v, 6) if isinstance(v, float) else v for key, v in row.items()})
    return rows


def sweep(device: gpu.Device, work: int) -> list[dict[str, float]]:
    """Tokens a second at each fixed batch, with the gaps between steps."""
    step = gpu.DecodeStep(device, work, max_batch=max(BATCHES))
    return [
        {
            "work": work,
            "batch": one.batch,
            "step_us": round(1e6 * one.step.seconds, 3),
            "empty_us": round(1e6 * one.empty.seconds, 3),
            "tokens_per_second": round(one.tokens_per_second),
            "gap_median_us": round(1e6 * one.step.gap, 2),
            "gap_max_us": round(1e6 * one.step.longest_gap, 2),
            "launches": one.step.launches,
        }
        for one in fixed_batches(step, BATCHES, launches=1_000 if device.is_gpu else 20, max_seconds=0.5)
    ]


def command(device: gpu.Device) -> dict[str, float | str]:
    """`course bench` with its defaults, as a process of its own: seconds from start to end."""
    kind = "cpu" if device.kind == "cpu-shim" else device.kind
    began = time.perf_counter()
    done = subprocess.run([*COMMAND, "--device", kind], capture_output=True, text=True)
    return {"seconds": time.perf_counter() - began, "status": done.returncode, "said": done.stdout or done.stderr}


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=gpu.KINDS, default="auto")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--profile", type=Path, help="record the grid of work, threads and batch to this file")
    asked = parser.parse_args()
    device = gpu.device(asked.device)
    started = " ".join(["tests/bench/kernel.py", *(Path(part).name for part in sys.argv[1:])])
    heavy = (16_384, 2**20) if device.is_gpu else (16_384,)
    found = {
        "provenance": record.provenance(device, started),
        "notes": device.notes,
        "agreement": agreement(device),
        "launches": launches(device),
        "fixed_batch": [row for work in heavy for row in sweep(device, work)],
        "loops": loops(device, heavy, range(5 if device.is_gpu else 1)),
        "command": command(device),
    }
    if device.is_gpu:
        others = [gpu.device("numpy")]
        try:
            others.append(gpu.device("cpu"))
        except gpu.KernelError as error:
            found["no_shim"] = str(error)
        found["agreement_of_others"] = {other.kind: agreement(other) for other in others}
    print(json.dumps({key: value for key, value in found.items() if key not in ("loops", "fixed_batch")}, indent=1))
    for rows in (found["fixed_batch"], found["loops"]):
        print("  ".join(rows[0]))
        for row in rows:
            print("  ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row.values()))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if asked.profile:
        recorded = decode_step.profile(device, started, told=lambda text: print(text, flush=True))
        gaps = [row["gap_max_us"] for row in found["fixed_batch"] if row["batch"] >= 8]
        recorded["longest_gap_seconds"] = round(max(gaps) / 1e6, 8)
        recorded["command_seconds"] = round(found["command"]["seconds"], 3)
        asked.profile.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
