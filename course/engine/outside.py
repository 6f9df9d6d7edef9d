"""What a request takes outside its engine, so that the seconds of whoever asked add up."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from course.base import settings
from course.engine.run import Run


@dataclass(frozen=True)
class Outside:
    """Seconds outside the engine. The arrivals of a Run are when the engine has the tokens of a prompt.

    network: one way. tokenize: a token of the prompt, in front of the queue. detokenize: a token of the answer; while
    the next one is computed the last one becomes text, so that only the final token's counts. All 0 by default.
    Raises ValueError for seconds below 0.
    """

    network: float = 0.0
    tokenize: float = 0.0
    detokenize: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = settings.real(field.name, getattr(self, field.name), low=0, high=settings.MAX_SECONDS)
            object.__setattr__(self, field.name, value)

    def parts(self, run: Run) -> dict[str, np.ndarray]:
        """Seconds of each request by where it spends them, (n,) each; NaN for whoever has no whole answer.

        network: there and back. tokenizer: before the queue and behind the last token. queue: until its slot. prompt:
        until its first token. answer: until its last one, preemptions included. The sum is E2E as the client sees it:
        `run.e2e` + network + tokenizer. In a padded batch the answer lasts until the batch ends.
        """
        whole = np.where(run.answered, 1.0, np.nan)
        return {
            "network": 2 * self.network * whole,
            "tokenizer": (self.tokenize * run.workload.prompt_tokens + self.detokenize) * whole,
            "queue": run.queue_wait * whole,
            "prompt": (run.first_computed - run.admitted) * whole,
            "answer": (run.response - run.first_computed) * whole,
        }

    def ttft(self, run: Run) -> np.ndarray:
        """TTFT as the client sees it [s], (n,): the first token has been turned into text and has come back."""
        before = self.network + self.tokenize * run.workload.prompt_tokens
        return before + run.ttft + self.detokenize + self.network

    def e2e(self, run: Run) -> np.ndarray:
        """E2E as the client sees it [s], (n,)."""
        return np.sum(list(self.parts(run).values()), axis=0)
