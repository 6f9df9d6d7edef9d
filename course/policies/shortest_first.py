"""Shortest first: continuous batching whose queue is sorted by length."""

from operator import attrgetter
from typing import Annotated

from course.base import settings
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION
from course.policies.base import Order, Request, State
from course.policies.continuous import (
    Continuous,
    EnableChunkedPrefill,
    EngineVersion,
    LongPrefillTokenThreshold,
    MaxNumBatchedTokens,
    SchedulerReserveFullISL,
    Watermark,
)
from course.policies.registry import Knob, MaxNumSeqs, registered
from course.policies.waiting import Waiting

BY = ("prompt", "guess")


@registered("shortest-first")
class ShortestFirst(Continuous):
    """As Continuous, but the shortest of those that wait are admitted first.

    by: "prompt", the tokens of the prompt, or "guess", what a predictor says of the answer (`Workload.with_guesses`).
    Equal ones keep their order, and so do those without a guess, behind all others. None that runs is sent away for a
    shorter one, and a long one may wait for as long as shorter ones come. Raises ValueError as Continuous does, and for
    another `by`.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        enable_chunked_prefill: EnableChunkedPrefill = True,
        long_prefill_token_threshold: LongPrefillTokenThreshold = 0,
        scheduler_reserve_full_isl: SchedulerReserveFullISL = True,
        by: Annotated[str, Knob("What is short: the prompt, or the guess of the answer.")] = "prompt",
        engine_version: EngineVersion = DEFAULT_ENGINE_VERSION,
        watermark: Watermark = 0.0,
    ):
        self.by = by
        super().__init__(
            max_num_seqs,
            max_num_batched_tokens,
            enable_chunked_prefill,
            long_prefill_token_threshold,
            scheduler_reserve_full_isl,
            engine_version,
            watermark,
        )

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for an unknown `by`."""
        super().check_settings()
        if self.by not in BY:
            raise ValueError(f"by must be {' or '.join(BY)}, not {settings.quote(self.by)}")

    def queue(self, state: State, waiting: Waiting) -> Order:
        """Requests that wait, the shortest first: an order that time does not change."""
        return Order(waiting.sorted_by(_prompt if self.by == "prompt" else _guess))


_prompt = attrgetter("prompt_tokens")


def _guess(request: Request) -> float:
    return float("inf") if request.guess is None else request.guess
