"""Runs of vLLM's own scheduler, as recorded in tests/data/vllm/, and the course's runs in the same form.

A run is a list of steps, (begin, tokens, preempted, used), and the times at which each request got its tokens. begin:
the step's number, one a unit of time. tokens: {request: how many it computed}. preempted: who lost its blocks before
it, sorted. used: KV blocks in use while it ran.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from course import KVCache, Workload, policies
from course.engine.run import Run
from tests.helpers.places import ROOT

DATA = ROOT / "tests" / "data" / "vllm"
Step = tuple[int, dict[int, int], list[int], int]


@dataclass(frozen=True)
class Served:
    """One run: its steps, and when each request got its tokens."""

    steps: list[Step]
    times: list[list[int]]


def recorded(kind: str) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The workloads of a kind, and by version: when it was recorded, and the runs."""
    document = json.loads((DATA / f"{kind}.json").read_text())
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
    return Served([(b, tokens[b], sorted(lost[b]), used) for b, used in zip(begins, run["used"], strict=True)], times)


def of_course(run: Run) -> Served:
    """The same of a run of the course, whose steps take 1 s each."""
    log, steps = run.log, run.steps
    tokens: list[dict[int, int]] = [{} for _ in range(len(steps))]
    for request, step, many, _ in log.chunks.tolist():
        tokens[step][request] = many
    for request, first, last, _ in log.decodes.tolist():
        for step in range(first, last + 1):
            tokens[step][request] = 1
    lost: list[list[int]] = [[] for _ in range(len(steps))]
    for request, step, _ in log.preemptions.tolist():
        lost[step].append(request)
    begins, used = steps.start.round().astype(int).tolist(), steps.blocks.tolist()
    times = [run.token_times(request).round().astype(int).tolist() for request in range(len(run))]
    return Served([(b, t, sorted(p), u) for b, t, p, u in zip(begins, tokens, lost, used, strict=True)], times)


def workload(load: dict[str, Any]) -> Workload:
    """The requests of a recorded workload."""
    return Workload(np.array(load["arrival"], float), np.array(load["prompt"]), np.array(load["output"]))


def policy(load: dict[str, Any], version: str, kind: type[policies.Continuous] = policies.Continuous) -> Any:
    """The settings of a recorded workload, as a policy that follows this release."""
    return kind(
        load["slots"],
        load["budget"],
        enable_chunked_prefill=load.get("chunked", True),
        long_prefill_token_threshold=load.get("threshold", 0),
        scheduler_reserve_full_isl=load.get("full_isl", True),
        engine_version=version,
    )


def cache(load: dict[str, Any], version: str, more: int = 0) -> KVCache:
    """The KV blocks of a recorded workload, and `more`."""
    return KVCache(load["blocks"] + more, load["size"], version)


def first_difference(mine: Served, theirs: Served) -> str | None:
    """Where two runs part, in words; None where they are equal."""
    for place, (a, b) in enumerate(zip(mine.steps, theirs.steps, strict=False)):
        for what, x, y in zip(("begin", "tokens", "preempted", "blocks used"), a, b, strict=True):
            if x != y:
                return f"step {place}, {what}: {x}, and vLLM {y}"
    if len(mine.steps) != len(theirs.steps):
        return f"{len(mine.steps)} steps, and vLLM {len(theirs.steps)}"
    return None if mine.times == theirs.times else "the times of tokens"
