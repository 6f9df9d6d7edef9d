"""Runs of the real vLLM with the course's language model, recorded step by step, and the same runs in the simulator.

    run = vllm_live.read("questions_8")
    simulated = run.replay()  # the same requests and settings; the n-th step takes what vLLM's n-th took
    run.equal_steps(simulated).all()

The files are in course/data/vllm, and the README there says what is in them. A step begins when the scheduler looks,
and ends when it looks again: between two looks arrivals do not count, which is how the simulator sees a step too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from course.base import settings
from course.engine.run import Run
from course.engine.serving import serve
from course.engine.step import Step
from course.memory.kvcache import KVCache
from course.policies import Continuous, Policy
from course.workload import Workload

FOLDER = Path(__file__).parents[1] / "data" / "vllm"
Scheduled = dict[int, tuple[int, int]]
"""What a step computes: request -> (tokens, tokens of it in the cache before)."""


def names() -> list[str]:
    """The recorded loads, in the order in which tables show them."""
    return json.loads((FOLDER / "loads.json").read_text(encoding="utf-8"))["loads"]


def read(name: str) -> VllmRun:
    """A recorded load by its name. ValueError where there is none."""
    if name not in names():
        raise ValueError(f"there is no recording {settings.quote(name)} of vLLM: choose {', '.join(names())}")
    return of_document(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def of_document(document: dict[str, Any]) -> VllmRun:
    """The run in a document, as course/data/vllm/README.md describes it."""
    requests, steps = document["requests"], document["steps"]
    per_request = {name: np.array(values, dtype=np.float64) / 1e6 for name, values in requests.items()
                   if name in ("due", "sent", "created", "arrival", "client_first", "client_last")}  # fmt: skip
    per_step = {
        name: np.array(steps[name], dtype=np.float64) / 1e6 for name in ("looks", "decided", "computed", "done")
    }
    known = np.zeros(len(requests["arrival"]), dtype=np.int64)
    schedule = []
    for row in steps["batch"]:
        step: Scheduled = {}
        for entry in row:
            request, tokens, cached = (entry, 1, int(known[entry])) if isinstance(entry, int) else entry
            step[request] = (tokens, cached)
            known[request] = cached + tokens
        schedule.append(step)
    return VllmRun(
        name=document["name"],
        title=document["title"],
        engine=document["engine"],
        prompt_tokens=np.array(requests["prompt_tokens"]),
        output_tokens=np.array(requests["output_tokens"]),
        prefix=tuple(map(tuple, requests["prefix"])) if "prefix" in requests else None,
        schedule=tuple(schedule),
        preempted=tuple(map(tuple, steps["preempted"])),
        same_as_numpy=requests["same_as_numpy"],
        running=np.array(steps["running"]),
        waiting=np.array(steps["waiting"]),
        blocks=np.array(steps["blocks"]),
        **per_request,
        **per_step,
    )


@dataclass(frozen=True, eq=False, repr=False)
class VllmRun:
    """One load that vLLM answered. Times in seconds since the first request reached the engine.

    engine: settings under vLLM's names, its version, the date, the machine.
    Of each request, in the order in which the engine got them: due, sent: when the client planned it and sent it;
    created: the API server had read it; arrival: the engine's scheduler had it; client_first, client_last: its first
    and its last token reached the client. prefix: a number for each full block of its prompt, equal where all tokens
    up to there are equal; None where no two prompts share a block. same_as_numpy: how many answers are, token by
    token, those of the course's own NumPy code.
    Of each step: looks: the scheduler begins; decided; computed: the tokens are there; done: the books are. schedule,
    preempted: what was decided. running, waiting: requests after that. blocks: in use.
    """

    name: str
    title: str
    engine: dict[str, Any]
    prompt_tokens: np.ndarray
    output_tokens: np.ndarray
    prefix: tuple[tuple[int, ...], ...] | None
    same_as_numpy: int
    due: np.ndarray
    sent: np.ndarray
    created: np.ndarray
    arrival: np.ndarray
    client_first: np.ndarray
    client_last: np.ndarray
    looks: np.ndarray
    decided: np.ndarray
    computed: np.ndarray
    done: np.ndarray
    schedule: tuple[Scheduled, ...]
    preempted: tuple[tuple[int, ...], ...]
    running: np.ndarray
    waiting: np.ndarray
    blocks: np.ndarray

    def __len__(self) -> int:
        return len(self.arrival)

    def __repr__(self) -> str:
        return f"VllmRun({self.title}: {len(self)} requests, {len(self.schedule)} steps, vLLM {self.engine['version']})"

    @property
    def label(self) -> str:
        """What stands on a page of it: who wrote it, where and when."""
        cores = self.engine["machine"].split(",")[0].replace("2 cores", "two cores")
        return f"vLLM {self.engine['version']}, small model, {cores}, {self.engine['date']}"

    # The settings

    @property
    def policy(self) -> Continuous:
        """The policy of its settings."""
        names = ("max_num_seqs", "max_num_batched_tokens", "long_prefill_token_threshold", "scheduler_reserve_full_isl")
        return Continuous(**{name: self.engine[name] for name in names})

    @property
    def cache(self) -> KVCache:
        """The blocks that requests can have: one less than vLLM logs, which keeps one for itself."""
        caching = self.engine["enable_prefix_caching"]
        return KVCache(self.engine["free_blocks"], self.engine["block_size"], self.engine["version"], caching)

    @cached_property
    def workload(self) -> Workload:
        """What the scheduler saw: a request that finds the engine idle arrives when the scheduler looks."""
        seen = self.arrival.copy()
        for step in self._after_idle:
            since = self.done[step - 1] if step else -np.inf
            seen[(seen > since) & (seen <= self.looks[step])] = self.looks[step]
        size = None if self.prefix is None else self.engine["block_size"]
        return Workload(
            seen, self.prompt_tokens, self.output_tokens, prefix=self.prefix, prefix_block_size=size, name=self.title
        )

    # Its steps

    @cached_property
    def _last_step(self) -> np.ndarray:
        found = np.zeros(len(self), dtype=np.int64)
        for k, step in enumerate(self.schedule):
            found[list(step)] = k
        return found

    @cached_property
    def _after_idle(self) -> np.ndarray:
        """Steps before which the engine was idle: nobody was left, and nobody had come while the step before ran."""
        found = [0]
        for k in range(1, len(self.schedule)):
            ended = int((self._last_step[list(self.schedule[k - 1])] == k - 1).sum())
            came = ((self.arrival > self.looks[k - 1]) & (self.arrival <= self.done[k - 1])).any()
            if self.running[k - 1] == ended and not self.waiting[k - 1] and not came:
                found.append(k)
        return np.array(found)

    @cached_property
    def seconds(self) -> np.ndarray:
        """Of each step: from one look of the scheduler to the next, or to its own end if the engine was idle then."""
        end = np.append(self.looks[1:], self.done[-1])
        before = self._after_idle[1:] - 1
        end[before] = self.done[before]
        return end - self.looks

    @property
    def pauses(self) -> np.ndarray:
        """Of each step: from its end to the next look of the scheduler [s], which counts to the step; 0 before idling.

        Its tokens leave the engine before the pause, in the simulator behind it.
        """
        return self.looks + self.seconds - self.done

    # Its times, by the engine's clock

    @cached_property
    def first(self) -> np.ndarray:
        """When the engine had the first token of each request."""
        found = np.full(len(self), np.nan)
        for k, step in enumerate(self.schedule):
            for request, (tokens, cached) in step.items():
                if np.isnan(found[request]) and cached + tokens >= self.prompt_tokens[request]:
                    found[request] = self.done[k]
        return found

    @cached_property
    def queue_wait(self) -> np.ndarray:
        """From the scheduler to the look that gave each request its slot; 0 for who came while it decided."""
        begun = {request: step for step, there in reversed(list(enumerate(self.schedule))) for request in there}
        return np.maximum(self.looks[[begun[request] for request in range(len(self))]] - self.arrival, 0)

    @cached_property
    def last(self) -> np.ndarray:
        """When the engine had the last one."""
        return self.done[self._last_step]

    @property
    def ttft(self) -> np.ndarray:
        """From the scheduler to the first token."""
        return self.first - self.arrival

    @property
    def e2e(self) -> np.ndarray:
        """From the scheduler to the last token."""
        return self.last - self.arrival

    @property
    def tpot(self) -> np.ndarray:
        """(E2E - TTFT) / (tokens - 1); NaN for one token."""
        gaps = np.where(self.output_tokens > 1, self.output_tokens - 1, 1)
        return np.where(self.output_tokens > 1, (self.last - self.first) / gaps, np.nan)

    @property
    def around(self) -> dict[str, np.ndarray]:
        """What lies around the engine's TTFT [s]: reading, handing_over, returning.

        reading: from sending to the request that the API server has made of it. handing_over: from there to the
        scheduler, another process. returning: from the engine's first token to the client's. Client, API server and
        engine are processes that share the machine's cores.
        """
        return {
            "reading": self.created - self.sent,
            "handing_over": self.arrival - self.created,
            "returning": self.client_first - self.first,
        }

    # The same in the simulator

    def replay(self, policy: Policy | None = None, cache: KVCache | None = None) -> Run:
        """Serve the same requests; the n-th step takes what vLLM's n-th step took, steps beyond as long as the last.

        policy, cache: other ones than those of its settings, to see what breaks.
        """
        return serve(
            self.workload, policy or self.policy, _Clock(self.seconds), cache or self.cache, honour_until=False
        )

    def equal_steps(self, run: Run) -> np.ndarray:
        """For each step of the longer of both whether the same requests compute the same tokens behind as many."""
        mine, other = list(self.schedule), schedule_of(run)
        longest = max(len(mine), len(other))
        return np.array([k < len(mine) and k < len(other) and mine[k] == other[k] for k in range(longest)])


class _Clock:
    """A step time that gives recorded seconds in the order of the steps, whatever is in them."""

    def __init__(self, seconds: Sequence[float] | np.ndarray):
        self.seconds, self.steps = seconds, 0

    def __call__(self, step: Step) -> float:
        self.steps += 1
        return float(self.seconds[min(self.steps, len(self.seconds)) - 1])


def schedule_of(run: Run) -> list[Scheduled]:
    """What each step of a simulated run computed. For policies that decide step by step, without padding."""
    found: list[Scheduled] = [{} for _ in run.steps.end]
    for request, first, last, known in run.log.decodes.tolist():
        for step in range(first, last + 1):
            found[step][request] = (1, known + step - first - 1)
    for request, step, tokens, cached in run.log.chunks.tolist():
        found[step][request] = (tokens, cached)
    return found
