"""A case small enough to do by hand: four prompts one after the other, blocks of four tokens, what each finds."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course.engine.serving import serve
from course.memory.kvcache import KVCache
from course.policies import Continuous
from course.workload import Workload

BLOCK_SIZE = 4
PROMPTS = {"A": 10, "B": 11, "C": 8, "D": 10}  # tokens
SHARED = 8  # tokens with which A, B and C begin; D is A with another token in its second place


@dataclass(frozen=True)
class Small:
    """names and prompts [tokens]. found: tokens of each that were in the cache."""

    names: tuple[str, ...]
    prompts: np.ndarray
    found: np.ndarray


@lru_cache(maxsize=1)
def small() -> Small:
    """Each comes when the one before it is answered."""
    tokens = np.array(list(PROMPTS.values()))
    prefix = ((0, 1), (0, 1), (0, 1), (2, 3))  # a hash stands for all tokens up to there: D shares none
    load = Workload(10.0 * np.arange(4), tokens, np.full(4, 2), prefix=prefix, prefix_block_size=BLOCK_SIZE)
    run = serve(load, Continuous(4, 64), lambda step: 1.0, KVCache(50, BLOCK_SIZE, prefix_caching=True))
    return Small(tuple(PROMPTS), tokens, np.asarray(run.log.lookups)[:, 2])
