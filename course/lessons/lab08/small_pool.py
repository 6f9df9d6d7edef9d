"""A case small enough to do by hand: four requests, a pool of twelve blocks, and what each holds over time."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.memory.kvcache import KVCache
from course.policies import Continuous
from course.policies.base import Schedule, State
from course.workload import Workload

REQUESTS, PROMPT, ANSWER = 4, 8, 12
BLOCKS, BLOCK_SIZE = 12, 4


class Noted(Continuous):
    """Continuous batching that notes, before each step, which blocks a request holds while that step runs."""

    def __init__(self) -> None:
        super().__init__(max_num_seqs=REQUESTS, max_num_batched_tokens=64)
        self.held: list[list[int]] = []

    def schedule(self, state: State) -> Schedule:
        """See Policy: what vLLM's order gives, asked again before every step."""
        answer = super().schedule(state)
        row = [0] * REQUESTS
        for request in (*state.running, *answer.tokens):
            if request not in answer.preempt:
                row[request.index] = -(-request.known // BLOCK_SIZE)
        self.held.append(row)
        return Schedule(answer.tokens, answer.preempt, answer.decodes)


@dataclass(frozen=True)
class Small:
    """The run, and the blocks that each request holds in each step: shape (steps, REQUESTS)."""

    run: Run
    held: np.ndarray


@lru_cache(maxsize=1)
def small() -> Small:
    """All four arrive at once; a step takes one second, whatever is in it."""
    policy = Noted()
    prompts, answers = np.full(REQUESTS, PROMPT), np.full(REQUESTS, ANSWER)
    load = Workload(arrival=np.zeros(REQUESTS), prompt_tokens=prompts, output_tokens=answers)
    run = serve(load, policy, lambda step: 1.0, KVCache(BLOCKS, BLOCK_SIZE))
    assert isinstance(run.policy, Noted)  # the copy that was served, with its notes
    return Small(run, np.array(run.policy.held))
