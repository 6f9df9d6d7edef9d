"""Records how long a step takes: decodes by batch and context, prompt chunks by size and context, both together.

The numbers are of one card, one model's sizes and these kernels; `record` writes them, with all that is needed to
believe them, after every point.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from course.gpu import energy
from course.gpu import record as records
from course.gpu.device import Device
from course.gpu.errors import KernelError
from course.gpu.queues import queue as queue_of
from course.gpu.transformer import Llama, Shape, Step
from course.models import ModelSpec

BLOCK = 16
BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024)
CONTEXTS = (256, 1_024, 4_096, 16_384, 32_768)
FULLEST = 65_536
"""Tokens of each decode, at most, when a batch fills the cache."""
CHUNKS = (16, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)
CACHED_TOKENS = (0, 2_048, 8_192, 24_576)
BESIDE = (0, 32, 8, 128)
"""Decodes beside a chunk; those of 0 and 32 come with every chunk and context, the others with some."""
CONTEXT_BESIDE = 1_024
LONGEST = 32_768
FAR: tuple[tuple[int, int, int, int], ...] = (
    *((0, 0, 32_768, 0), (32, CONTEXT_BESIDE, 32_768, 0), (0, 0, 32_768, 2_048)),
    *((0, 0, 16_384, 16_384), (32, CONTEXT_BESIDE, 16_384, 16_384)),
    *((1, 65_536, 0, 0), (2, 65_536, 0, 0), (4, 65_536, 0, 0)),
    *((0, 0, chunk, 57_344) for chunk in (256, 512, 1_024, 2_048, 4_096, 8_192)),
    *((0, 0, 65_536, 0), (0, 0, 65_536, 2_048)),
)
"""Long prompts, whole and in chunks, up to FARTHEST tokens: the last to be recorded, and half of the time."""
FARTHEST = 69_632
TIMES = ("seconds", "low", "high", "replays", "form")
COLUMNS = ("decodes", "decode_context", "chunk", "cached", *TIMES)
VERIFIED = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DRAFTS = (1, 2, 4, 7)
VERIFY_CONTEXTS = (1_024, 4_096)
VERIFY_COLUMNS = ("sequences", "drafts", "context", *TIMES)

Point = tuple[int, int, int, int]
"""(decodes, tokens that each of them attends to, tokens of the chunk, tokens before it)."""
VerifyPoint = tuple[int, int, int]
"""(sequences, drafts of each, tokens that the last row of each attends to)."""
Timed = Callable[[Llama, Any, np.random.Generator], tuple[np.ndarray, str]]


def points(most_tokens: int, longest: int = FARTHEST) -> Iterator[Point]:
    """The points of a recording, those first that matter most, within a cache of `most_tokens`."""
    found: dict[Point, None] = {}
    for context in (1_024, *(one for one in CONTEXTS if one != 1_024)):
        found |= dict.fromkeys((batch, context, 0, 0) for batch in BATCHES)
    full = ((batch, min(FULLEST, most_tokens // batch // BLOCK * BLOCK)) for batch in BATCHES)
    found |= dict.fromkeys((batch, context, 0, 0) for batch, context in full if context)
    for beside in BESIDE:
        for cached in CACHED_TOKENS:
            if beside in (8, 128) and cached not in (0, 8_192):
                continue
            sizes = [chunk for chunk in CHUNKS if chunk <= 2_048 or beside in (0, 32)]
            sizes = [chunk for chunk in sizes if chunk + cached <= LONGEST]
            found |= dict.fromkeys((beside, CONTEXT_BESIDE if beside else 0, chunk, cached) for chunk in sizes)
    found |= dict.fromkeys(FAR)
    for decodes, context, chunk, cached in found:
        fits = decodes * context + chunk + cached <= most_tokens and max(context, chunk + cached) <= longest
        if fits:
            yield decodes, context, chunk, cached


def verify_points(most_tokens: int) -> Iterator[VerifyPoint]:
    """Batches that verify drafts, within a cache of `most_tokens`."""
    for context in VERIFY_CONTEXTS:
        for drafts in DRAFTS:
            for sequences in VERIFIED:
                if sequences * context <= most_tokens:
                    yield sequences, drafts, context


def step_at(llama: Llama, point: Point, rng: np.random.Generator, make: Callable[..., Step] = Step) -> Step:
    """The step of a point, with random tokens and shuffled blocks, ready to run. make: called as Step is."""
    decodes, context, chunk, cached = point
    chunks = [(chunk, cached)] if chunk else []
    step = make(llama, chunks=chunks, lengths=[context] * decodes)
    need = [-(-(chunk + cached) // BLOCK)] * bool(chunk) + [-(-context // BLOCK)] * decodes
    step.write(rng.integers(0, llama.shape.vocabulary, step.tokens), _tables(llama, need, rng))
    return step


def verify_step_at(llama: Llama, point: VerifyPoint, rng: np.random.Generator) -> Step:
    """The step that verifies drafts: drafts + 1 new tokens a sequence, for which its keys and values are read once."""
    sequences, drafts, context = point
    step = Step(llama, lengths=[context] * sequences, newest=drafts + 1)
    tables = _tables(llama, [-(-context // BLOCK)] * sequences, rng)
    step.write(rng.integers(0, llama.shape.vocabulary, step.tokens), tables)
    return step


def _tables(llama: Llama, need: Sequence[int], rng: np.random.Generator) -> list[list[int]]:
    """Tables of so many blocks each, shuffled."""
    order = rng.permutation(llama.blocks)
    return [order[end - many : end].tolist() for end, many in zip(np.cumsum(need), need, strict=True)]


def seconds_at(
    llama: Llama,
    point: Point,
    rng: np.random.Generator,
    budget: float = 0.3,
    make: Callable[..., Step] = Step,
    meter: Meter | None = None,
) -> tuple[np.ndarray, str]:
    """Seconds of replays of the step of a point, and its form. budget: seconds after which no more replays start.

    meter: takes the mean watts of further replays.
    """
    return replayed(step_at(llama, point, rng, make), budget, meter)


def verify_seconds_at(llama: Llama, point: VerifyPoint, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Seconds of replays of the step that verifies drafts, and its form."""
    return replayed(verify_step_at(llama, point, rng))


class Meter:
    """The mean watts of the step that was timed last, from a counter of joules; None before, and where it stood."""

    def __init__(self, joules: Callable[[], float]) -> None:
        self._joules = joules
        self.watts: float | None = None

    def measure(self, seconds: Callable[[int], Any], each: float) -> None:
        """Repeat for about half a second. seconds: replays so many steps and waits; each: seconds of one."""
        self.watts = energy.mean_watts(self._joules, lambda: seconds(max(1, int(energy.TURN / each))))


def replayed(step: Step, budget: float = 0.3, meter: Meter | None = None) -> tuple[np.ndarray, str]:
    """Seconds of replays of a step that has its inputs, and its form. budget, meter: see `seconds_at`."""
    step.run()
    replay = step.captured()
    queue = step.queue
    first = float(queue.seconds(replay, repeats=1, warm=1)[0])  # type: ignore[attr-defined]
    repeats = int(np.clip(budget / first, 4, 30))
    found = queue.seconds(replay, repeats=repeats, warm=1)  # type: ignore[attr-defined]
    if meter is not None:
        meter.measure(lambda many: queue.seconds(replay, repeats=many, warm=0), first)  # type: ignore[attr-defined]
    return found, step.form


def record(
    device: Device,
    spec: ModelSpec,
    out: str | os.PathLike,
    *,
    command: str,
    tied: bool = False,
    kind: str = "bf16",
    cache_tokens: int = 262_144,
    wanted: Sequence[Point] | None = None,
    verify: Sequence[VerifyPoint] | None = None,
    timed: Timed | None = None,
    how: str = "",
    clocks_every: int = 1,
    limit: float = 600.0,
    told: Callable[[str], None] = lambda text: None,
    llama: Llama | None = None,
) -> dict[str, Any]:
    """Records the points on a GPU into the JSON file `out`, which holds what was measured so far at any moment.

    spec: whose sizes to take; the weights are random. tied: whether its head is the embedding table. command: how this
    was started, for the provenance. cache_tokens: room for KV. limit: seconds after which no further point starts.
    wanted, verify: the points, by default all that fit. timed: what times one of `wanted`. told: is called with a line
    a point. llama: a model that is there already. `watts` has the card's mean during each of `points`, None where the
    driver counts no energy; it is left out with `timed`.

    Raises KernelError without a CUDA device, or where its memory does not suffice; ValueError for a model that is not
    dense. A point that fails is left out and told.
    """
    if device.kind != "cuda":
        raise KernelError(f"steps are recorded as CUDA graphs: {device.name} has none")
    began = time.perf_counter()
    if llama is None:
        llama = Llama(
            queue_of(device),
            Shape.of(spec, tied=tied),
            kind=kind,
            blocks=cache_tokens // BLOCK,
            max_tokens=max(chunk + decodes for decodes, _, chunk, _ in FAR) + max(BATCHES),
            max_sequences=max(*BATCHES, max(VERIFIED) * (max(DRAFTS) + 1)),
            max_positions=FARTHEST,
        )
        llama.fill_cache()
    told(f"{time.perf_counter() - began:6.1f} s  the model is in memory")
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    verified: dict[str, list[Any]] = {name: [] for name in VERIFY_COLUMNS}
    recording: dict[str, Any] = {}
    clocks: list[str] = []
    joules = energy.counter(device) if timed is None else None
    meter, watts = (Meter(joules) if joules else None), list[float | None]()
    rng = np.random.default_rng(0)
    most = llama.blocks * BLOCK
    work: Iterator[tuple[dict, Timed, Any]] = itertools.chain(
        (
            (columns, timed or partial(seconds_at, meter=meter), point)
            for point in wanted or points(most, llama.max_positions)
        ),
        ((verified, verify_seconds_at, point) for point in (verify_points(most) if verify is None else verify)),
    )
    for table, time_it, point in work:
        if time.perf_counter() - began > limit:
            told(f"stopped after {limit:.0f} s, before {point}")
            break
        try:
            found, form = time_it(llama, point, rng)
        except (KernelError, ValueError) as error:
            told(f"{point}: left out, {error}")
            continue
        if len(table["form"]) % clocks_every == 0:
            clocks.append(_clocks())
        low, middle, high = (float(f"{value:.4g}") for value in np.percentile(found, (10, 50, 90)))
        if table is columns:
            decodes, context, chunk, cached = point
            sizes: tuple[int, ...] = (decodes, decodes * context, chunk, cached)
        else:
            sequences, drafts, context = point
            sizes = (sequences, drafts, sequences * context)
        row = (*sizes, middle, low, high, len(found), form)
        for name, value in zip(table, row, strict=True):
            table[name].append(value)
        if meter and table is columns:
            watts.append(meter.watts and round(meter.watts, 1))
        told(f"{time.perf_counter() - began:6.1f} s  {row}")
        recording = {
            "kernel": "llama_step",
            "model": spec.name,
            "sizes": {name: getattr(llama.shape, name) for name in llama.shape.__dataclass_fields__},
            "kind": kind,
            "weight_bytes": llama.shape.step_weight_bytes(kind),
            "kv_bytes_per_token": llama.shape.kv_bytes_per_token(kind),
            "provenance": records.provenance(device, command)
            | {"clocks": _clocks_seen(clocks), "how": _how(columns) + how},
            "points": columns,
        } | ({"verify": verified} if verified["form"] else {})
        recording |= {"watts": watts} if watts else {}
        scratch = Path(out).with_suffix(".part")
        scratch.write_text(json.dumps(recording, separators=(",", ":")) + "\n", encoding="utf-8")
        os.replace(scratch, out)
    return recording


def _how(columns: dict[str, list[Any]]) -> str:
    return (
        "one step of all layers and the head as a CUDA graph, events around each replay, warm, median of "
        f"{min(columns['replays'])} to {max(columns['replays'])} replays, low and high the 10th and 90th percentile; "
        "random weights, tokens and KV, shuffled blocks; no sampling"
    )


def _clocks() -> str:
    """Clocks of the multiprocessors and of the memory in MHz, as the driver says while the card is still warm."""
    return records.output_of("nvidia-smi", "--query-gpu=clocks.sm,clocks.mem", "--format=csv,noheader,nounits")


def _clocks_seen(clocks: list[str]) -> dict[str, list[int]]:
    rows = [[int(part) for part in one.split(",")] for one in clocks if one.replace(",", "").replace(" ", "").isdigit()]
    if not rows:
        return {}
    low, high = np.min(rows, 0).tolist(), np.max(rows, 0).tolist()
    return {"sm_mhz": [low[0], high[0]], "memory_mhz": [low[1], high[1]]}
