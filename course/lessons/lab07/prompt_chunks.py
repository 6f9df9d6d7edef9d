"""Lab 07's long prompt without the chats: its steps in chunks, and the price in throughput."""

from functools import cache

import numpy as np

from course import traces
from course.engine.serving import serve
from course.lessons.lab07.long_prompt import PROMPT, STEP, THEORY, engine
from course.policies import Policy
from course.steptime import Step, StepTime
from course.workload import Workload

DECODES, CONTEXT = 32, 1_024  # beside each chunk, as in the steps that were recorded: decodes, tokens of each
CHUNKS = tuple(2**k for k in range(6, 16))


def chunk_steps(prompt: int, chunk: int) -> list[Step]:
    """The steps that compute a prompt in chunks, each beside the decodes; the chunks before it are cached."""
    starts = range(0, prompt, chunk)
    return [Step(DECODES, DECODES * CONTEXT, ((min(chunk, prompt - cached), cached),)) for cached in starts]


def seconds_of_steps(chunk: int, step_time: StepTime = STEP) -> np.ndarray:
    """Seconds of each of the long prompt's steps."""
    return np.array([step_time(step) for step in chunk_steps(PROMPT, chunk)])


def seconds_a_pair(chunk: int, step_time: StepTime = STEP, cached: int = 24_576) -> float:
    """Seconds that a query-key pair adds to a step with a chunk of this size, up to so many cached tokens."""
    first, last = (step_time(Step(DECODES, DECODES * CONTEXT, ((chunk, behind),))) for behind in (0, cached))
    return (last - first) / (cached * chunk)


def saturated_tokens_per_second(load: Workload, policy: Policy, step_time: StepTime) -> float:
    """Prompt and output tokens a second while somebody waits, if all requests are there at time 0."""
    crowd = Workload(np.zeros(len(load)), load.prompt_tokens, load.output_tokens)
    run = serve(crowd, policy, step_time)
    until = run.steps.end <= run.admitted.max()
    return float((run.steps.useful + run.steps.prefill_tokens)[until].sum() / run.admitted.max())


@cache
def throughput(budget: int) -> tuple[float, float]:
    """Tokens/s of the trace, in theory and recorded."""
    trace = traces.read(traces.example())
    theory, recorded = (saturated_tokens_per_second(trace, engine(budget), t) for t in (THEORY, STEP))
    return theory, recorded
