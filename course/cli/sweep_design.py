"""What `course sweep` runs: `course simulate` in one process or another, from its options, some settings and a seed."""

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np

from course.base.settings import quote, whole
from course.cli import build
from course.cli.common import AsTyped
from course.cli.simulate import simulate
from course.engine.fleet import FleetRun, part
from course.engine.run import Run
from course.engine.serving import Engine, serve
from course.memory.kvcache import KVCache
from course.policies import Policy
from course.workload import SLO, Workload
from course.workload.slo import of_requests

Promises = Mapping[str, Mapping[str, float]]
"""Class -> metric -> seconds; the class "" is whoever is in no other."""
FIXED = ("trace", "format", "sort", "on_error", "request_class", "policy_file")
"""Options that say what is served: they have one value in a sweep."""
OTHER = ("ctx", "as_json", "perfetto", "group_by", "warmup", "seed", "ttft_slo_ms", "tpot_slo_ms", "e2e_slo_ms")
OF_LOAD = (*build.SYNTHETIC, "trace", "format", "sort", "on_error", "head", "scale_rate", "max_concurrency")


@cache
def defaults() -> dict[str, Any]:
    """Each option of `course simulate`, with its default."""
    return {name: one.default for name, one in inspect.signature(simulate).parameters.items() if name not in OTHER[:2]}


@cache
def kinds() -> dict[str, type]:
    """Each setting that a sweep can vary, and the type of its values; `cards` is the sweep's own."""
    found = {}
    for name, one in inspect.signature(simulate).parameters.items():
        if name not in (*FIXED, *OTHER):
            kind = get_args(one.annotation)[0]
            found[name] = next((part for part in get_args(kind) if part is not type(None)), kind)
    return found | {"cards": int, "policy": str}


@dataclass(frozen=True)
class Simulated:
    """A design for `course.sweep`. options: what was typed of `course simulate`. fingerprint: of the trace's content.

    slos: by class. prices: dollars an hour of a card, by its name.
    """

    options: Mapping[str, Any]
    fingerprint: str
    slos: Promises
    prices: Mapping[str, float]

    @property
    def label(self) -> str:
        """What tells its rows from those of another."""
        return "course simulate " + json.dumps([self.options, self.fingerprint, self.slos, self.prices], sort_keys=True)

    def __call__(self, *, seed: int, **settings: Any) -> dict[str, Any]:
        """The numbers of one run. ValueError, in the words of the command line, where it is refused."""
        given = {**self.options, **settings}
        cards = given.pop("cards", None)
        asked = {**defaults(), **given, "seed": seed}
        if "policy" in settings:
            asked["policy"] = [settings["policy"]]
        with build.spoken_in_flags(asked):
            build.check(asked)
            (policy,) = build.policies(asked, given).values()
            timing = build.step_time(asked)
            load = _load(json.dumps([{name: asked[name] for name in OF_LOAD}, sorted(given)]), self.fingerprint)
            if asked["trace"] is not None and seed:
                load = reordered(load, seed)
            load = promised(load, self.slos)
            ranks = asked["tensor_parallel_size"]
            cards = ranks if cards is None else whole("cards", cards, high=4096)
            if cards % ranks:
                raise AsTyped(
                    f"{cards} cards are no whole number of replicas of {ranks}: --tensor-parallel-size divides"
                )
            cache_, _ = build.cache(asked, set(given), load)
            run = served(load, policy, timing, cache_, cards // ranks, asked)
            return numbers(run, cards, self.prices.get(asked["gpu"]))


@lru_cache(maxsize=2)
def _load(text: str, fingerprint: str) -> Workload:
    """The requests of some options; those of a trace are read once in each process."""
    options, given = json.loads(text)
    return build.workload(options, set(given))


def fingerprint(path: Path | None) -> str:
    """What tells the content of a trace from another; nothing without one. OSError if it cannot be read."""
    if path is None or not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def reordered(load: Workload, seed: int) -> Workload:
    """The same requests at the same times in another order, drawn from the seed.

    ValueError if their order means something: answers that are waited for, prompts that go on from one another.
    """
    if load.after is not None or load.prefix is not None:
        raise AsTyped("these requests follow from one another, so that they have one order: use --seeds 1")
    order = np.random.default_rng(seed).permutation(len(load))
    return replace(part(replace(load, arrival=np.zeros(len(load))), order), arrival=load.arrival)


def promised(load: Workload, slos: Promises) -> Workload:
    """The requests with their SLOs. ValueError for a class that none of them has."""
    if not slos:
        return load
    classes = [] if load.class_ is None else np.unique(load.class_).tolist()
    nobody = next((name for name in slos if name and name not in map(str, classes)), None)
    if nobody is not None:
        raise AsTyped(f"--slo {nobody}: no request has the class {quote(nobody)}")
    for_all = slos.get("", {})
    of = {label: SLO(**slos.get(str(label), for_all)) for label in classes} or SLO(**for_all)
    return replace(load, slo=of_requests(of, len(load), load.class_))


def served(load: Workload, policy: Policy, timing: Any, cache_: KVCache | None, replicas: int, asked: Any) -> Run:
    """One Run of so many replicas that get the requests in turn, as a `Fleet` with its round robin serves them, sooner.

    ValueError where one's arrival depends on another's answer.
    """
    if replicas == 1:
        return build.served(serve, load, policy, timing, cache_, asked)
    if load.after is not None or load.max_concurrency is not None:
        raise AsTyped("users who wait for answers cannot be dealt out to replicas: use one, or requests at a rate")
    rows = [np.arange(first, len(load), replicas) for first in range(min(replicas, len(load)))]
    parts = [(build.served(serve, part(load, of), policy, timing, cache_, asked), of) for of in rows]
    return FleetRun(load, [Engine(policy, timing, cache_)] * replicas, parts)


def numbers(run: Run, cards: int, price: float | None) -> dict[str, Any]:
    """The summary, and the goodput of a card and of a dollar."""
    found = run.summary()
    found |= {"cards": cards, "goodput_per_card": found["goodput"] / cards}
    if price is not None:
        found |= {"dollars_per_hour": cards * price, "goodput_per_dollar": 3600 * found["goodput"] / (cards * price)}
    return found
