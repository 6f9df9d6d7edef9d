"""What the real vLLM did to one chat of the small model while long prompts were read, recorded at two budgets."""

from dataclasses import dataclass

import numpy as np

from course.calibration import vllm_live

LOADS = ("long_256", "long_64")
LONG = 400  # tokens: the prompts of these loads have fewer than 40 or more than 400


@dataclass(frozen=True)
class Answer:
    """The longest answer of a recorded load, by vLLM's own clock.

    gaps: before each of its tokens but the first [s]. chunk: tokens of long prompts in the step that brought it.
    prompts: how many long prompts those were.
    """

    run: vllm_live.VllmRun
    gaps: np.ndarray
    chunk: np.ndarray
    prompts: int

    @property
    def budget(self) -> int:
        """The token budget of a step."""
        return self.run.engine["max_num_batched_tokens"]

    @property
    def longest(self) -> float:
        """The longest gap in whose step a chunk was computed [s]."""
        return float(self.gaps[self.chunk > 0].max())


def answer(load: str) -> Answer:
    """What that chat met in a load."""
    run = vllm_live.read(load)
    chat, came, chunks = int(run.output_tokens.argmax()), [], []
    long: set[int] = set(np.flatnonzero(run.prompt_tokens > LONG).tolist())
    read: set[int] = set()
    for done, step in zip(run.done, run.schedule, strict=True):
        if chat in step and sum(step[chat]) >= run.prompt_tokens[chat]:
            here = {one: step[one][0] for one in long & step.keys() if step[one][1] < run.prompt_tokens[one]}
            came.append(done)
            chunks.append(sum(here.values()))
            read |= here.keys()
    return Answer(run, np.diff(came), np.array(chunks[1:]), len(read))


def label() -> str:
    """Whose clock it was, with version and date."""
    engine = vllm_live.read(LOADS[0]).engine
    return f"{engine['name']} {engine['version']}, small model, two cores, {engine['date']}"
