"""Lab 07's long prompt without the chats: its steps in chunks, the price in throughput, and another order of work."""

import numpy as np

from course.engine.serving import serve
from course.lessons.lab07.long_prompt import STEP
from course.policies import Policy, Schedule, State
from course.steptime import Step, StepTime
from course.workload import Workload

DECODES, CONTEXT = 32, 1_024  # beside each chunk, as in the steps that were recorded: decodes, tokens of each
CHUNKS = tuple(2**k for k in range(6, 16))


def chunk_steps(prompt: int, chunk: int, decodes: int = DECODES, decode_context: int = DECODES * CONTEXT) -> list[Step]:
    """The steps that compute a prompt in chunks, each beside decodes that attend to `decode_context` tokens in all."""
    return [
        Step(decodes, decode_context, ((min(chunk, prompt - cached), cached),)) for cached in range(0, prompt, chunk)
    ]


def seconds_of_steps(prompt: int, chunk: int, step_time: StepTime = STEP) -> np.ndarray:
    """Seconds of each of these steps."""
    return np.array([step_time(step) for step in chunk_steps(prompt, chunk)])


def prefill_seconds(step_time: StepTime, prompt: int, chunk: int) -> float:
    """Seconds of the steps that compute a prompt in chunks, alone: each has the earlier ones in the cache."""
    return float(sum(step_time(step) for step in chunk_steps(prompt, chunk, 0, 0)))


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


class PrefillFirst(Policy):
    """Prompt chunks or decodes in a step, never both, and chunks first: chunking without mixing.

    The order of SGLang where --enable-mixed-chunk is not given.
    """

    def __init__(self, max_num_seqs: int, chunked_prefill_size: int):
        self.max_num_seqs, self.chunked_prefill_size = max_num_seqs, chunked_prefill_size

    def __repr__(self) -> str:
        return f"PrefillFirst(max_num_seqs={self.max_num_seqs}, chunked_prefill_size={self.chunked_prefill_size})"

    def schedule(self, state: State) -> Schedule:
        """Prompts while there are any, in chunks; else everybody decodes."""
        left, tokens = self.chunked_prefill_size, {}
        free = self.max_num_seqs - len(state.running)
        for request in [*(r for r in state.running if not r.emitted), *state.waiting[:free]]:
            if left > 0:
                tokens[request] = min(request.remaining, left)
                left -= tokens[request]
        return Schedule(tokens or dict.fromkeys(state.running, 1))
