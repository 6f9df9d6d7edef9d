"""Records what lab 12 shows: what a step costs by launches, as a graph, with dependent launch, and as one kernel.

PYTHONPATH=. python tests/bench/launches.py --out h200_launches.json
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from course import gpu, lm
from course.gpu import record
from course.gpu.ops import most_likely
from course.gpu.ops.generate import Generate
from course.gpu.ops.queue import Launch, Queue
from course.gpu.queues import queue as queue_of
from course.gpu.transformer import Llama, Shape, Step
from course.lessons.lab12.on_device import DEPENDENT, FORMS, GRAPH, LAUNCHES, PERSISTENT, Toy, spent, undependent
from course.models import model as spec_of

WORKS = (1, 1_024, 4_096, 16_384, 65_536, 262_144)
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
BATCHES = (1, 2, 4, 8, 16, 32)
CONTEXT, TRACED_LAUNCHES = 200, 16
PROMPT = [1, 300, 301, 302, 303, 304, 305, 306]


def digits(value: Any) -> Any:
    """Numbers of four digits."""
    if isinstance(value, dict):
        return {name: digits(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [digits(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def traced(queue: Queue, step: Launch, kernels: int, before: Launch | None = None) -> dict[str, list]:
    """Kernels and the program's calls of the last of five steps, as PyTorch's profiler saw them: (name, us, us)."""
    import torch

    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    torch.cuda.init()
    for _ in range(3):
        if before:
            before()
        step()
    queue.wait()
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(5):
            if before:
                before()
                queue.wait()
            step()
            queue.wait()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    found = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])[-kernels:]
    calls = sorted((e for e in events if e.get("cat") in ("cuda_driver", "cuda_runtime")), key=lambda e: e["ts"])
    calls = [e for e in calls if "aunch" in e["name"]]
    begin = min(float(found[0]["ts"]), float("inf")) if found else 0.0
    per_step = max(1, len(calls) // 5)
    calls = calls[-per_step:]
    start = min([begin, *(float(e["ts"]) for e in calls)])

    def rows(these: list[dict]) -> list:
        return [
            [re.sub(r"[<(].*", "", e["name"]), round(float(e["ts"]) - start, 2), round(float(e["dur"]), 2)]
            for e in these
        ]

    return {"kernels": rows(found), "calls": rows(calls)}


def toy(queue: Queue) -> dict[str, Any]:
    """The note's step: by kernel size in every form, and by the number of launches."""
    here, found = Toy(queue), {}
    for work in WORKS:
        for form in FORMS:
            step, before = here.step(form, work, TRACED_LAUNCHES)
            found[f"{form} {work}"] = asdict(spent(queue, step, 30, before))
            if form == PERSISTENT:
                one, twice = (here.step(form, work, many) for many in (200, 400))
                each = [
                    float(np.median(queue.seconds(lambda s=s, b=b: (b(), s()), repeats=5, warm=1)))  # type: ignore
                    for s, b in (one, twice)
                ]
                found[f"{form} {work}"]["each"] = (each[1] - each[0]) / 200
            elif form != LAUNCHES:
                long, _ = here.step(form, work, 200)
                found[f"{form} {work}"]["each"] = float(np.median(queue.seconds(long, repeats=5, warm=1))) / 200
            print(form, work, found[f"{form} {work}"], flush=True)
    counts = {}
    for count in COUNTS:
        for form in FORMS:
            counts[f"{form} {count}"] = asdict(here.spent(form, 1, count, 30))
    return {"by_work": found, "launches_a_step": TRACED_LAUNCHES, "by_count": counts}


def toy_traces(queue: Queue) -> dict[str, Any]:
    """A timeline of a step of the note's kernel for every size and form."""
    here, found = Toy(queue), {}
    for work in WORKS:
        for form in FORMS:
            step, before = here.step(form, work, TRACED_LAUNCHES)
            trace = traced(queue, step, 1 if form == PERSISTENT else TRACED_LAUNCHES, before)
            found[f"{form} {work}"] = {name: [row[1:] for row in rows] for name, rows in trace.items()}
    return found


def steps_of(device: gpu.Device, batch: int) -> dict[str, tuple[Queue, Step, Launch]]:
    """The small model's decode step in each form that is a list of kernels."""
    found: dict[str, tuple[Queue, Step, Launch]] = {}
    for kind, form in (("fp32", "launches"), ("bf16", "graph")):
        model: Any = lm.load(device=device, form=form)
        queue = model._queue
        for dependent in (True, False):
            kv = model.paged_kv(batch * 16 + 1)
            tables = [list(range(16 * row, 16 * row + 16)) for row in range(batch)]
            made: Callable[[], Step] = lambda kv=kv: Step(kv.llama, lengths=[CONTEXT] * batch, max_blocks=16)  # noqa: E731
            if dependent:
                step = made()
            else:
                with undependent(queue):
                    step = made()
            step.write(np.full(batch, 300), tables)
            step.run()
            queue.wait()
            step.held = kv  # type: ignore[attr-defined]
            name = " dependent" if dependent else ""
            if dependent:
                found[f"{kind} launches"] = queue, step, step.run
            found[f"{kind} graph{name}"] = queue, step, step.captured()
    return found


def small_model(device: gpu.Device) -> dict[str, Any]:
    """The small model's step: what each form costs by batch."""
    found: dict[str, Any] = {"times": {}, "kernels": {}}
    for batch in BATCHES:
        for name, (queue, step, start) in steps_of(device, batch).items():
            row = asdict(spent(queue, start, 40))
            row["gpu"] = float(np.median(queue.seconds(start, repeats=20, warm=2)))  # type: ignore[attr-defined]
            found["times"][f"{name} {batch}"] = row
            found["kernels"][name] = len(step.launches)
            print(name, batch, row, flush=True)
    return found


def persistent(device: gpu.Device, variants: list[tuple[int, int]]) -> dict[str, Any]:
    """Seconds a token of the kernel that writes by itself, by sequences beside each other, for each variant."""
    model: Any = lm.load(device=device, form="persistent")
    found = {}
    for cluster, threads in variants:
        one = Generate(model._queue, model._generate.shape, _arrays(model), 512, cluster=cluster, threads=threads)
        for batch in BATCHES:
            queue, times = model._queue, []
            for most in (100, 300):
                written = one.prepare([PROMPT] * batch, most, -1)
                again = lambda w=written: (w.reset(), w.launch())  # noqa: E731
                times.append(float(np.median(queue.seconds(again, repeats=5, warm=1))))
            found[f"{cluster} {threads} {batch}"] = (times[1] - times[0]) / 200
        print(cluster, threads, found, flush=True)
    return {"each": found}


def _arrays(model: Any) -> dict[str, Any]:
    found = {"embedding": model.embedding, "norm": model.norm}
    for i, layer in enumerate(model.layers):
        found |= {
            f"layers.{i}.attention_norm": layer.attention_norm, f"layers.{i}.qkv": layer.qkv.T,
            f"layers.{i}.o": layer.output.T, f"layers.{i}.mlp_norm": layer.mlp_norm,
            f"layers.{i}.gate_up": layer.gate_up.T, f"layers.{i}.down": layer.down.T,
        }  # fmt: skip
    return found


def host(device: gpu.Device) -> dict[str, Any]:
    """What of a step is the program's: inputs, the copy of the logits, choosing a token on the card or here; copies."""
    found: dict[str, Any] = {}
    for batch in (1, 8, 32):
        queue, step, replay = steps_of(device, batch)["bf16 graph dependent"]
        tables = [list(range(16 * row, 16 * row + 16)) for row in range(batch)]
        chosen = step.llama.ints(batch)
        choose = most_likely.prepare(queue, step._logits, chosen, kind="bf16", chained=True)
        with_choice = queue.captured([*step.launches, choose], step)
        ids = np.full(batch, 300)

        def on_the_card(start: Launch = with_choice, these: Any = chosen, on: Queue = queue) -> np.ndarray:
            start()
            on.wait()
            return on.device.to_numpy(these)

        def here(start: Launch = replay, one: Step = step) -> np.ndarray:
            start()
            return one.logits().argmax(-1)

        found[str(batch)] = {
            "inputs": spent(queue, lambda s=step, i=ids, t=tables: s.write(i, t), 30).wall,
            "step": spent(queue, replay, 30).wall,
            "token chosen here": spent(queue, here, 30).wall,
            "token chosen on the card": spent(queue, on_the_card, 30).wall,
        }
    cupy = device.cupy  # type: ignore[attr-defined]
    stream = cupy.cuda.Stream(non_blocking=True)
    copies = {}
    for size in (4_096, 1 << 20, 16 << 20):
        there = cupy.empty(size, np.uint8)
        pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size)
        for name, at in (("pageable", np.zeros(size, np.uint8)), ("pinned", pinned)):
            at[:] = 1
            rows = []
            for _ in range(20):
                stream.synchronize()
                began = time.perf_counter()
                there.data.copy_from_host_async(at.ctypes.data, size, stream)
                returned = time.perf_counter() - began
                stream.synchronize()
                rows.append((returned, time.perf_counter() - began))
            copies[f"{name} {size}"] = dict(zip(("call", "wall"), np.median(rows, 0).tolist(), strict=True))
    return {"step": found, "copies": copies}


def large_model(device: gpu.Device) -> dict[str, Any]:
    """The step of an 8B by launches and as a graph."""
    llama = Llama(queue_of(device), Shape.of(spec_of("llama-3.1-8b")), blocks=1_024)
    queue, found = llama.queue, {}
    llama.fill_cache()
    for batch in (1, 8):
        tables = np.random.default_rng(0).permutation(64 * batch).reshape(batch, 64).tolist()
        for form in (GRAPH, DEPENDENT):
            if form == GRAPH:
                with undependent(queue):
                    step = Step(llama, lengths=[1_024] * batch)
            else:
                step = Step(llama, lengths=[1_024] * batch)
            step.write(np.full(batch, 300), tables)
            step.run()
            if form == DEPENDENT:
                found[f"{LAUNCHES} {batch}"] = asdict(spent(queue, step.run, 15))
            found[f"{form} {batch}"] = asdict(spent(queue, step.captured(), 15))
    return {"times": found, "kernels": len(step.launches)}


def main() -> None:
    """Record, part by part; a part that fails is left out and said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one-step", action="store_true", help="for a profiler: a few steps of the small model")
    parser.add_argument("--variants", action="store_true", help="all cluster sizes of the persistent kernel")
    asked = parser.parse_args()
    device = gpu.device("cuda")
    if asked.one_step:
        steps_of(device, 1)["bf16 launches"][2]()
        model: Any = lm.load(device=device, form="persistent")
        model._generate.answers([PROMPT], 20, -1)
        return
    many = [(16, 256), (16, 512), (16, 1_024), (8, 512), (1, 512)] if asked.variants else []
    parts: dict[str, Callable[[], Any]] = {
        "small_model": lambda: small_model(device),
        "toy": lambda: toy(queue_of(device)),
        "traces": lambda: toy_traces(queue_of(device)),
        "host": lambda: host(device),
        "large_model": lambda: large_model(device),
        "persistent": lambda: persistent(device, many or [(16, 512), (8, 512)]),
    }
    how = "warm, medians; by the program's clock, or events where it says so; timelines by PyTorch's profiler"
    recorded: dict[str, Any] = {
        "kernel": "launches",
        "provenance": record.provenance(device, f"tests/bench/launches.py --out {asked.out.name}") | {"how": how},
    }
    for name, part in parts.items():
        try:
            recorded[name] = digits(part())
        except Exception as error:  # a lent card is there for minutes: what works is kept
            traceback.print_exc()
            print(f"{name} is left out: {error!r}", flush=True)
        asked.out.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
