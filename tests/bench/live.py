"""Model against reality: the same load served live on this GPU and simulated from a recording, side by side.

PYTHONPATH=. python tests/bench/live.py --json live.json [--model 8b] [--runs 5] [--requests 300] [--loads 0.5,0.65,0.8]

Continuous batching with and without chunked prefill. First the captured steps are recorded, by
`course.gpu.step_profile`; --profile takes a recording that is there. What the card takes beyond the recording is fitted
to one run of its own at each load, before the others (`LiveLlama.card`). What policy, engine and launches take is
measured in the run itself (`LiveLlama.host`), or for comparison in those of the fit. A load is a share of what the
policy can serve, which a simulated burst says beforehand.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from course import KVCache, Workload, gpu, lengths, policies, serve, steptime
from course.engine.live import serve_live
from course.gpu import record, step_profile
from course.gpu.queues import queue
from course.gpu.transformer import Llama, Shape
from course.models import ModelSpec, model
from tools.gpu.captured import AsCaptured, CaptureSizes, Overhead, captured_seconds
from tools.gpu.live import LiveLlama, Timings, replayed, summary

ONE = ModelSpec("llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128256, source="Llama 3.2 1B")
MODELS: dict[str, tuple[ModelSpec, bool]] = {"8b": (model("llama-3.1-8b"), False), "1b": (ONE, True)}
SLOTS, BLOCKS, LONGEST, TYPICAL = 64, 8_192, 4_096, 600
PROMPT, ANSWER = lengths.uniform(128, 896), lengths.uniform(16, 112)
POLICIES = {
    "chunked": policies.Continuous(SLOTS, 512),
    "whole prompts": policies.Continuous(SLOTS, 2_048, enable_chunked_prefill=False),
}
CACHE = KVCache(BLOCKS, 16)
SIZES = CaptureSizes()
GUESS = Overhead(3e-4, 5e-6, 2e-5)
"""To find the capacity with, before anything is measured."""
NAMES = ("ttft", "e2e", "tpot", "response", "admitted")


def points() -> Iterator[step_profile.Point]:
    """What is recorded of the captured sizes: decodes by context, chunks alone and beside decodes."""
    for context in (512, 256, 1_000):
        for decodes in (1, 2, 4, 6, 8, 9, 12, 16, 17, 20, 24, 25, 28, 32, 40, 48, 56, 64):
            yield decodes, context, 0, 0
    for beside in (0, 32, 16, 8, 24, 48, 64):
        for cached in (0, 512) if beside in (0, 32) else (0,):
            for chunk in SIZES.tokens:
                yield beside, 512 if beside else 0, chunk, cached


def capacity(policy: policies.Policy, step_time: Any) -> float:
    """Requests a second that a policy serves when everybody is there at once."""
    load = Workload.poisson(1e6, 1_000, PROMPT, ANSWER, seed=99)
    return 1_000 / float(serve(load, policy, step_time, CACHE).makespan)


def live_run(load: Workload, policy: policies.Policy, executor: LiveLlama) -> Any:
    """The run, without Python's collector of garbage in the middle of it."""
    executor.start_over()
    gc.collect()
    gc.disable()
    try:
        return serve_live(load, policy, executor, CACHE)
    finally:
        gc.enable()


def split(executor: LiveLlama) -> dict[str, float]:
    """Median seconds of a step of the last run: on the card, and what the host adds, by part."""
    timings = executor.timings
    parts = {"gpu": timings.gpu, "inputs": timings.inputs, "after": timings.after}
    found = {name: np.array(values) for name, values in parts.items()}
    # The seconds of a step that began after a wait contain nothing of the wait.
    found["policy and engine"] = np.array(executor.seconds) - sum(found.values())
    return {name: float(np.median(values)) for name, values in found.items()} | {
        "host share": float(1 - found["gpu"].sum() / np.sum(executor.seconds))
    }


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", type=Path, help="every step of every live run, as a NumPy archive")
    parser.add_argument("--recorded", type=Path, default=Path("captured.json"), help="where the recording goes")
    parser.add_argument("--model", choices=MODELS, default="8b")
    parser.add_argument("--profile", help="a recording that is there, of this card")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--loads", default="0.5,0.65,0.8")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no further load starts")
    return parser.parse_args()


def against_recording(executor: LiveLlama, recorded: steptime.Recorded) -> list[float]:
    """The steps of the last run on the card, as multiples of what was recorded: percentiles 5, 50 and 95."""
    expected = [
        captured_seconds(recorded, SIZES, parts, *context)
        for parts, context in zip(executor.timings.parts, executor.timings.context, strict=True)
    ]
    return np.percentile(np.array(executor.timings.gpu) / expected, (5, 50, 95)).tolist()


def main() -> None:
    """Capture, calibrate, then the runs."""
    asked = options()
    began = time.perf_counter()

    def say(*words: Any) -> None:
        print(f"{time.perf_counter() - began:6.1f}", *words, flush=True)

    spec, tied = MODELS[asked.model]
    # On one core: whoever moves from core to core finds its caches cold.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    device = gpu.device("cuda")
    llama = Llama(
        queue(device),
        Shape.of(spec, tied=tied),
        blocks=BLOCKS,
        max_tokens=2_048 + SLOTS,
        max_sequences=SLOTS + 16,
        max_positions=LONGEST,
    )
    llama.fill_cache()
    executor = LiveLlama(llama, longest=LONGEST, typical=TYPICAL, sizes=SIZES)
    found: dict[str, Any] = {"provenance": record.provenance(device, " ".join(["tests/bench/live.py", asked.model]))}
    for label, policy in POLICIES.items():
        sizes = SIZES.up_to(int(policy.max_num_batched_tokens), 8, SLOTS)
        executor.capture(sizes)
        say(f"{label}: {len(sizes)} sizes captured")
    profile = asked.profile or str(asked.recorded)
    if not asked.profile:
        step_profile.record(
            device, spec, profile, tied=tied, llama=llama, wanted=list(points()), timed=executor.seconds_at, verify=(),
            command=f"tests/bench/live.py --model {asked.model}", clocks_every=10,
            how="; captured sizes of a live executor, greedy decoding; decodes run as long between chunks",
        )  # fmt: skip
    recorded = steptime.recorded(profile)
    say(f"recorded: {recorded!r}")
    found |= {"model": spec.name, "recording": repr(recorded), "policies": {}}
    steps_of: dict[str, np.ndarray] = {}
    for label, policy in POLICIES.items():
        most = capacity(policy, AsCaptured(recorded, SIZES, GUESS))
        shares = [float(share) for share in asked.loads.split(",")]
        steps_of |= runs_to_fit(executor, policy, label, most, shares)
        card, host = executor.card(recorded), executor.host()
        block: dict[str, Any] = {
            "capacity": most,
            "card": asdict(card),
            "host": asdict(host),
            "split": split(executor),
            "card against recording": against_recording(executor, recorded),
            "loads": [],
        }
        found["policies"][label] = block
        say(label, json.dumps(block))
        for share in shares:
            if time.perf_counter() - began > asked.limit:
                say("stopped: the time is up")
                break
            runs, apart = [], 0.0
            for seed in range(asked.runs):
                load = Workload.poisson(share * most, asked.requests, PROMPT, ANSWER, seed=seed)
                live = live_run(load, policy, executor)
                again = serve(load, policy, replayed(executor.seconds), CACHE)
                apart = max(apart, *(float(np.nanmax(abs(getattr(live, n) - getattr(again, n)))) for n in NAMES))
                steps_of[f"{label} {share} {seed}"] = every_step(executor)
                hosts = executor.host(), host
                runs.append([summary(live), *modelled(load, policy, recorded, card, hosts)])
            table, late = errors_of(runs), len(executor.late)
            block["loads"].append(
                {"share": share, "rate": share * most, "metrics": table, "replay apart": apart, "late": late}
            )
            errors = {key: f"{one['error']:+.1%} ({one['error, host of before']:+.1%})" for key, one in table.items()}
            values = {key: float(f"{one['live']:.4g}") for key, one in table.items()}
            say(label, share, "model against live", errors, "live", values, "replay", apart, "late", late)
            if asked.json:
                asked.json.write_text(json.dumps(found, indent=1) + "\n")
            if asked.steps:
                np.savez_compressed(asked.steps, **steps_of)  # type: ignore[arg-type]


def runs_to_fit(
    executor: LiveLlama, policy: policies.Policy, label: str, most: float, shares: list[float]
) -> dict[str, np.ndarray]:
    """A run at each load, after one that warms up, and every step of each; the executor keeps the steps of all."""
    live_run(Workload.poisson(0.65 * most, 400, PROMPT, ANSWER, seed=1_000), policy, executor)
    seconds: list[float] = []
    timings, found = Timings(), {}
    for number, share in enumerate(shares):
        live_run(Workload.poisson(share * most, 200, PROMPT, ANSWER, seed=1_001 + number), policy, executor)
        found[f"{label} {share} fit"] = every_step(executor)
        seconds += executor.seconds
        for name, values in vars(timings).items():
            values += getattr(executor.timings, name)
    executor.seconds[:], executor.timings = seconds, timings
    return found


def modelled(
    load: Workload, policy: policies.Policy, recorded: steptime.Recorded, card: Overhead, hosts: Sequence[Overhead]
) -> list[dict[str, float]]:
    """The same load in the simulator, with what each of these hosts takes beside the card."""
    step_times = [AsCaptured(recorded, SIZES, card.beside(host)) for host in hosts]
    return [dict(summary(serve(load, policy, step_time, CACHE))) for step_time in step_times]


def errors_of(runs: list[list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """The median of the live runs, and the median of the model's errors, of each metric.

    runs: of each the live one, the model with the run's own host, and with the host of before.
    """
    table = {}
    for key in runs[0][0]:
        live, own, before = np.array([[one[key] for one in run] for run in runs]).T
        table[key] = {
            "live": float(np.median(live)),
            "error": float(np.median(own / live) - 1),
            "error, host of before": float(np.median(before / live) - 1),
            "error of the medians": float(np.median(own) / np.median(live) - 1),
        }
    return table


def every_step(executor: LiveLlama) -> np.ndarray:
    """(steps, 9): what each step of the last run was made of, then its seconds, as `Timings` has them."""
    t = executor.timings
    return np.column_stack([np.array(t.parts), np.array(t.context), t.gpu, t.inputs, t.after, executor.seconds])


if __name__ == "__main__":
    main()
