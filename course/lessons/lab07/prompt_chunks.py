"""Lab 07's long prompt without the chats: its steps in chunks, the price in throughput, and another order of work."""

import numpy as np

from course.engine.serving import serve
from course.gpu.recordings import prefill_chunks
from course.lessons.lab07.long_prompt import STEP
from course.lessons.lab07.recording import RecordedStep
from course.policies import Policy, Schedule, State
from course.steptime import Step, StepTime
from course.workload import Workload

RECORDING = prefill_chunks()
CARD_STEP = RecordedStep(RECORDING, STEP.per_context)
"""Step times of the recorded card; the K and V of the decodes are read at its measured bandwidth."""


def chunk_steps(
    prompt: int, chunk: int, decodes: int = RECORDING.decodes, decode_context: int = RECORDING.decode_context
) -> list[Step]:
    """The steps that compute a prompt in chunks, each beside decodes that attend to `decode_context` tokens in all."""
    return [
        Step(decodes, decode_context, ((min(chunk, prompt - cached), cached),)) for cached in range(0, prompt, chunk)
    ]


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
