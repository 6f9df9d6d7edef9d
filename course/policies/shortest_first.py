"""Shortest first: continuous batching whose queue is sorted by length."""

from collections.abc import Sequence

from course.base import settings
from course.policies.base import Request
from course.policies.continuous import Continuous

BY = ("prompt", "guess")


class ShortestFirst(Continuous):
    """As Continuous, but whoever waits is admitted in the order of `by`: "prompt", the tokens of the prompt, or
    "guess", what a predictor says of the answer (`Workload.with_guesses`). Equal ones keep their order, and so do those
    without a guess, behind all others. Nobody who runs is sent away for a shorter one, and a long one may wait for as
    long as shorter ones come. Raises ValueError as Continuous does, and for another `by`.
    """

    def __init__(
        self,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        enable_chunked_prefill: bool = True,
        long_prefill_token_threshold: int = 0,
        scheduler_reserve_full_isl: bool = True,
        by: str = "prompt",
    ):
        self.by = by
        super().__init__(
            max_num_seqs,
            max_num_batched_tokens,
            enable_chunked_prefill,
            long_prefill_token_threshold,
            scheduler_reserve_full_isl,
        )

    def check_settings(self) -> None:
        super().check_settings()
        if self.by not in BY:
            raise ValueError(f"by must be {' or '.join(BY)}, not {settings.shown(self.by)}")

    def queue(self, waiting: Sequence[Request]) -> Sequence[Request]:
        return waiting if len(waiting) == 1 else sorted(waiting, key=_prompt if self.by == "prompt" else _guess)


def _prompt(request: Request) -> int:
    return request.prompt_tokens


def _guess(request: Request) -> float:
    return float("inf") if request.guess is None else request.guess
