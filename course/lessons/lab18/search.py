"""Does thought beat chance? The reference design, the defaults, and searches that draw their designs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from course.lessons.lab18 import service
from course.lessons.lab18.design import APART, CACHE_AWARE, KV_TYPES, ROUTING, SHARDED, Design
from course.lessons.lab18.scoring import score
from course.policies import Policy

RUNS = 12  # scored runs that a search has, and that a learner is advised to take
SEARCHES = 10
FLAGS: Mapping[str, Sequence[Any]] = {
    "card": tuple(service.PRICES),
    "replicas": (1, 2, 3, 4, 5, 6, 8),
    "tensor_parallel_size": (1, 2),
    "max_num_seqs": (16, 32, 64, 128, 256, 512, 1_024),
    "max_num_batched_tokens": (1_024, 2_048, 4_096, 8_192),
    "long_prefill_token_threshold": (0, 256, 512, 1_024),
    "enable_prefix_caching": (True, False),
    "routing": ROUTING,
    "kv_cache_dtype": KV_TYPES,
    "num_speculative_tokens": (0, 1, 2, 4),
}
REFERENCE = Design(
    card="H100", replicas=2, max_num_seqs=256, max_num_batched_tokens=2_048, long_prefill_token_threshold=512,
    routing=CACHE_AWARE, kv_cache_dtype="fp8", num_speculative_tokens=4,
)  # fmt: skip
TUNED = Design(
    card="L40S", replicas=5, max_num_seqs=256, max_num_batched_tokens=1_024, long_prefill_token_threshold=512,
    routing=APART, kv_cache_dtype="fp8", num_speculative_tokens=4,
)  # fmt: skip
"""What tuning on the seen day alone ends with: the highest score there of all that were tried."""


def drawn(seed: int, runs: int = RUNS) -> list[Design]:
    """Designs whose flags are drawn, each from its list of FLAGS; those that cannot be are drawn again."""
    rng, found = np.random.default_rng([18, 12, seed]), list[Design]()
    while len(found) < runs:
        flags = {name: values[int(rng.integers(len(values)))] for name, values in FLAGS.items()}
        if flags["card"] not in SHARDED:
            flags["tensor_parallel_size"] = 1
        with suppress(ValueError):  # engines apart, and only one of them
            found.append(Design(**flags))
    return found


@lru_cache(maxsize=4_096)
def tried(design: Design, seed: int = service.SEEN, policy: Callable[[Design], Policy] | None = None) -> float:
    """The score of a design on a day; 0 if an engine refuses what it is asked."""
    try:
        return score(design, service.day(seed), policy).score
    except ValueError:
        return 0.0


def best(designs: Iterable[Design]) -> tuple[Design, float]:
    """The design with the highest score on the seen day, the first of equals."""
    found = [(design, tried(design)) for design in designs]
    return max(found, key=lambda one: one[1])


def unseen(design: Design, seeds: Iterable[int] = service.UNSEEN) -> list[float]:
    """Its scores on the days that were not seen."""
    return [tried(design, seed) for seed in seeds]


def defaults(most: int = 8) -> Design:
    """The defaults of vLLM on as few H100 as pass on the seen day. Raises ValueError if so many do not."""
    for replicas in range(1, most + 1):
        if tried(Design(replicas=replicas)):
            return Design(replicas=replicas)
    raise ValueError(f"with vLLM's defaults {most} H100 do not keep the promises of the seen day")


def ratio(mine: Sequence[float], other: Sequence[float]) -> float:
    """How many times the mean of the one is that of the other; infinite if the other never holds."""
    return float(np.mean(mine) / np.mean(other)) if np.any(other) else float("inf")
