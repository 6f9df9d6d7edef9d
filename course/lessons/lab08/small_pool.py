"""A case small enough to do by hand: four requests, a pool of twelve blocks, and what each holds over time."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course.calibration.vllm_live import schedule_of
from course.engine.run import Run
from course.engine.serving import serve
from course.memory.kvcache import KVCache
from course.policies import Continuous
from course.workload import Workload

REQUESTS, PROMPT, ANSWER = 4, 8, 12
BLOCKS, BLOCK_SIZE = 12, 4


@dataclass(frozen=True)
class Small:
    """The run, and the blocks that each request holds in each step: shape (steps, REQUESTS)."""

    run: Run
    held: np.ndarray


@lru_cache(maxsize=1)
def small() -> Small:
    """All four arrive at once; a step takes one second, whatever is in it, and whoever holds blocks is in it."""
    prompts, answers = np.full(REQUESTS, PROMPT), np.full(REQUESTS, ANSWER)
    load = Workload(arrival=np.zeros(REQUESTS), prompt_tokens=prompts, output_tokens=answers)
    run = serve(load, Continuous(REQUESTS, 64), lambda step: 1.0, KVCache(BLOCKS, BLOCK_SIZE))
    held = np.zeros((len(run.steps), REQUESTS), dtype=int)
    for step, scheduled in enumerate(schedule_of(run)):
        for request, (tokens, cached) in scheduled.items():
            held[step, request] = -(-(cached + tokens) // BLOCK_SIZE)
    return Small(run, held)
