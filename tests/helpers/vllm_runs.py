"""Runs of vLLM's own scheduler, as recorded in tests/data/vllm/, and the course's runs in the same form.

A run is a list of steps, (begin, tokens, preempted, used), the times at which each request got its tokens, and hits.
begin: the step's number, one a unit of time. tokens: {request: how many it computed}. preempted: who lost its blocks
before it, sorted. used: KV blocks in use while it ran. hits: (step, request, tokens that were in the cache when it was
admitted).
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from course import KVCache, Workload, policies
from course.engine.run import Run
from tests.helpers.places import DATA
from tools.vllm_check.workloads import tokens_of

Step = tuple[int, dict[int, int], list[int], int]


@dataclass(frozen=True)
class Served:
    """One run: its steps, when each request got its tokens, and what newcomers had in the cache."""

    steps: list[Step]
    times: list[list[int]]
    hits: list[tuple[int, int, int]]


def recorded(kind: str) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The workloads of a kind, and by version: when it was recorded, and the runs."""
    document = json.loads((DATA / "vllm" / f"{kind}.json").read_text())
    return document["workloads"], document["recorded"]


def of_vllm(run: dict[str, Any]) -> Served:
    """A run as vLLM's scheduler made it: each token that no chunk accounts for was computed as one for one."""
    times = [[end for first, many in runs for end in range(first, first + many)] for runs in run["times"]]
    tokens: dict[int, dict[int, int]] = defaultdict(dict)
    for request, ends in enumerate(times):
        for end in ends:
            tokens[end - 1][request] = 1
    for first, request, each, many in run["chunks"]:
        for step in range(first, first + many):
            tokens[step][request] = each
    lost: dict[int, list[int]] = defaultdict(list)
    for step, request in run["preempted"]:
        lost[step].append(request)
    begins = sorted(tokens)
    assert len(begins) == len(run["used"]), "a step without tokens, or one that is not recorded"
    steps = [(begin, tokens[begin], sorted(lost[begin]), used) for begin, used in zip(begins, run["used"], strict=True)]
    return Served(steps, times, sorted(tuple(hit) for hit in run.get("hits", ())))


def of_course(run: Run) -> Served:
    """The same of a run of the course, whose steps take 1 s each."""
    log, steps = run.log, run.steps
    begins = steps.start.round().astype(int).tolist()
    admitted = {(request, first) for request, first, _ in log.stays.tolist()}
    tokens: list[dict[int, int]] = [{} for _ in range(len(steps))]
    hits = []
    for request, step, many, computed in log.chunks.tolist():
        tokens[step][request] = many
        if computed and (request, step) in admitted:
            hits.append((begins[step], request, computed))
    for request, first, last, known in log.decodes.tolist():
        for step in range(first, last + 1):
            tokens[step][request] = 1
        if (request, first) in admitted:
            hits.append((begins[first], request, known - 1))
    lost: list[list[int]] = [[] for _ in range(len(steps))]
    for request, step, _ in log.preemptions.tolist():
        lost[step].append(request)
    times = [run.token_times(request).round().astype(int).tolist() for request in range(len(run))]
    rows = zip(begins, tokens, lost, steps.blocks.tolist(), strict=True)
    return Served([(begin, each, sorted(out), used) for begin, each, out, used in rows], times, sorted(hits))


def workload(load: dict[str, Any]) -> Workload:
    """The requests of a recorded workload, with a name for each full block of prompt and answer if they share some."""
    arrival, prompt, output = (np.array(load[name]) for name in ("arrival", "prompt", "output"))
    if not load.get("prefix"):
        return Workload(arrival.astype(float), prompt, output)
    names: dict[tuple[int, ...], int] = {}
    texts = load.get("tokens") or [tokens_of(load, request) for request in range(len(prompt))]
    prefix = [
        tuple(
            names.setdefault(tuple(text[:end]), len(names)) for end in range(load["size"], len(text) + 1, load["size"])
        )
        for text in texts
    ]
    blocks = {"prefix_block_size": load["size"], "prefix_answers": "tokens" not in load}
    return Workload(arrival.astype(float), prompt, output, prefix=prefix, **blocks)


def policy(load: dict[str, Any], version: str, kind: type[policies.Continuous] = policies.Continuous) -> Any:
    """The settings of a recorded workload, as a policy that follows this release."""
    return kind(
        load["slots"],
        load["budget"],
        enable_chunked_prefill=load.get("chunked", True),
        long_prefill_token_threshold=load.get("threshold", 0),
        scheduler_reserve_full_isl=load.get("full_isl", True),
        engine_version=version,
        watermark=load.get("watermark", 0),
    )


def cache(load: dict[str, Any], version: str, more: int = 0) -> KVCache:
    """The KV blocks of a recorded workload, and `more`."""
    return KVCache(load["blocks"] + more, load["size"], version, load.get("prefix", False))


def first_difference(mine: Served, theirs: Served) -> str | None:
    """Where two runs part, in words; None where they are equal."""
    for place, (a, b) in enumerate(zip(mine.steps, theirs.steps, strict=False)):
        for what, x, y in zip(("begin", "tokens", "preempted", "blocks used"), a, b, strict=True):
            if x != y:
                return f"step {place}, {what}: {x}, and vLLM {y}"
    if len(mine.steps) != len(theirs.steps):
        return f"{len(mine.steps)} steps, and vLLM {len(theirs.steps)}"
    if mine.times != theirs.times:
        return "the times of tokens"
    return None if mine.hits == theirs.hits else f"hits: {mine.hits}, and vLLM {theirs.hits}"
