"""Longest prefix first: continuous batching that admits whoever finds most in the prefix cache."""

import math
from collections.abc import Iterable
from operator import attrgetter
from typing import Annotated

from course.base import settings
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION
from course.policies.base import Request, State
from course.policies.continuous import Continuous, EngineVersion, MaxNumBatchedTokens, Watermark
from course.policies.registry import Knob, MaxNumSeqs, registered
from course.policies.waiting import Waiting


@registered("longest-prefix")
class LongestPrefixFirst(Continuous):
    """As Continuous, but of those that wait the one with the most tokens in the cache is admitted first.

    Equal ones keep their order. What is in the cache changes with every step, so the queue is sorted in each. Without
    `prefix_caching` nobody finds anything, and it is Continuous.
    ageing: who has waited for so many seconds stands before all others, the oldest first; infinite: nobody does, and a
    request whose beginning is rare may wait for as long as others come. 0: first come first served.

    Raises ValueError as Continuous does, and for ageing below 0.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        ageing: Annotated[float, Knob("Waiting after which nothing else counts; inf: none.", seconds=True)] = math.inf,
        engine_version: EngineVersion = DEFAULT_ENGINE_VERSION,
        watermark: Watermark = 0.0,
    ):
        self.ageing = ageing
        super().__init__(max_num_seqs, max_num_batched_tokens, engine_version=engine_version, watermark=watermark)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for ageing below 0."""
        super().check_settings()
        if self.ageing != math.inf:
            self.ageing = settings.real("ageing", self.ageing, low=0, high=settings.MAX_SECONDS)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, ageing={self.ageing:g})"

    def queue(self, state: State, waiting: Waiting) -> Iterable[Request]:
        """Those that have waited long enough, then the others, who finds most first: right for this step only."""
        others: Iterable[Request] = waiting
        if self.ageing != math.inf:
            since = state.now - self.ageing
            yield from sorted((request for request in waiting if request.arrival <= since), key=attrgetter("arrival"))
            others = [request for request in waiting if request.arrival > since]
        yield from sorted(others, key=lambda request: request.remaining - request.known)
