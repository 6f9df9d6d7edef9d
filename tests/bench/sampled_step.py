"""What drawing tokens adds to a captured step of an 8B on a GPU, and what a bell in pinned memory saves the host.

    python -m tests.bench.sampled_step sampled.json

The steps are those that an engine runs (tools.gpu.padded): the same graph ends with the most likely token, or with a
token drawn by top-k and top-p. Random weights make flat logits, so that top-p alone takes the long way of the search.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from course import gpu
from course.gpu.ops import decode_bell, sampling
from course.gpu.queues import queue
from course.gpu.transformer import Llama, Shape
from course.lessons.lab12.on_device import BATCH, DEPENDENT, GRAPH, LAUNCHES, THREADS, Toy
from course.models import model
from tools.gpu.padded import PaddedStep

TOKENS = 1_024
RULES = {"k 50, p 0.9": (50, 0.9), "p 0.9": (0, 0.9), "all": (0, 1.0)}
WORKS = (1, 1_024, 16_384)


def steps(on: Any) -> dict[str, Any]:
    """Milliseconds of a step: without choosing, with the most likely token, and drawn by each rule."""
    llama, found = Llama(on, Shape.of(model("llama-3.1-8b")), blocks=64 * 64 + 64), {}
    llama.fill_cache()
    rng = np.random.default_rng(0)
    for batch in (1, 8, 16, 32, 64):
        tables = rng.permutation(64 * batch).reshape(batch, 64).tolist()
        ids = rng.integers(0, 128_000, batch)
        times: dict[str, Any] = {}
        prepared: dict[str, Callable[[], Any]] = {}
        written: dict[str, tuple[PaddedStep, Any]] = {}
        for name in ("nothing", "most likely", *RULES):
            step = PaddedStep(
                llama, chunk_tokens=0, chunks=0, decodes=batch, longest=TOKENS, typical=TOKENS, sampled=name in RULES
            )
            given = None
            if name in RULES:
                top_k, top_p = RULES[name]
                draws = rng.random(batch)
                given = sampling.settings(batch, top_k=top_k, top_p=top_p, draws=draws, columns=llama.shape.vocabulary)
            if name == "nothing":
                step.launches.pop()
            step.write_parts(ids, tables, lengths=[TOKENS] * batch, settings=given)
            step.run()
            prepared[name], written[name] = step.captured(), (step, given)
        for _ in range(3):  # in turns, since a card's clock changes
            for name, replay in prepared.items():
                times.setdefault(name, []).extend(on.seconds(replay, 9).tolist())
        found[str(batch)] = {name: float(np.median(many)) * 1e3 for name, many in times.items()}
        step, given = written["k 50, p 0.9"]
        for name, these in (("host, most likely", None), ("host, drawn", given)):
            one = step if these is not None else written["most likely"][0]
            began = time.perf_counter()
            for _ in range(50):
                one.write_parts(ids, tables, lengths=[TOKENS] * batch, settings=these)
            on.wait()
            found[str(batch)][name] = (time.perf_counter() - began) / 50 * 1e3
        print(batch, {name: round(one, 4) for name, one in found[str(batch)].items()}, flush=True)
    return found


def bell(on: Any) -> dict[str, Any]:
    """Microseconds until the program has the tokens of a toy step of one kernel, by how it is started."""
    toy, found = Toy(on), {}
    for work in WORKS:
        times: dict[str, Any] = {}
        for form in (LAUNCHES, GRAPH, DEPENDENT):
            spent = toy.spent(form, work, 1, 300)
            times[form] = {"known": spent.wall * 1e6, "host": spent.host * 1e6, "queued": spent.queued * 1e6}
        once = decode_bell.Bell(on, sequences=BATCH, work=work, steps=2_000, threads=THREADS)
        once.start()
        many = []
        for _ in range(2_000):
            began = time.perf_counter()
            once.ring()
            many.append(time.perf_counter() - began)
        on.wait()
        times["bell"] = {"known": float(np.median(many)) * 1e6, "p90": float(np.percentile(many, 90)) * 1e6}
        found[str(work)] = times
        print(work, {form: {name: round(us, 2) for name, us in one.items()} for form, one in times.items()}, flush=True)
    return found


def main() -> None:
    """Both, as JSON and as lines."""
    on = queue(gpu.device("cuda"))
    found: dict[str, Any] = {"bell": bell(on)}
    found["steps"] = steps(on)
    with open(sys.argv[1], "w") as file:
        json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
