"""A rate limit for each tenant, at a gateway that answers 429 with Retry-After."""

import math
from collections.abc import Hashable
from copy import copy
from typing import Annotated

from course.base import settings
from course.policies.base import Policy, Request, Schedule, State, copied
from course.policies.bucket import SLOWEST
from course.policies.by_key import tenant_of
from course.policies.continuous import Continuous, MaxNumBatchedTokens
from course.policies.registry import Knob, MaxNumSeqs, registered


@registered("rate-limit")
class RateLimit(Continuous):
    """A request whose tenant has too few tokens left is sent away, and comes again after as many seconds as it is told.

    A bucket starts full, and fills by `tokens_per_second` up to `burst` tokens. A request costs its prompt and what its
    `guess` says of the answer. If the bucket holds as much, it passes and is served first come first served; else it is
    told the whole seconds after which the bucket will hold it, as Retry-After says them, and whoever comes first then
    gets them. One that costs more than `burst` is rejected for good. Whose request it is: `by_key.tenant_of`.

    Raises ValueError as Continuous does, for a rate below 0.001 and a bucket of less than a token.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        tokens_per_second: Annotated[float, Knob("Tokens a second that each tenant may ask for.", 4_000.0)],
        burst: Annotated[float, Knob("Tokens that a full bucket holds.", 10_000.0)],
    ):
        self.tokens_per_second, self.burst = tokens_per_second, burst
        self.begin()
        super().__init__(max_num_seqs, max_num_batched_tokens)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for a bucket that lets nobody through."""
        super().check_settings()
        rate = settings.real("tokens_per_second", self.tokens_per_second, low=SLOWEST, high=settings.MAX_TOKENS)
        self.tokens_per_second, self.burst = rate, settings.real("burst", self.burst, low=1, high=settings.MAX_TOKENS)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, tokens_per_second={self.tokens_per_second:g}, burst={self.burst:g})"

    def fresh(self) -> Policy:
        """The same with full buckets."""
        made = copy(self)
        made.begin()
        return copied(made)

    def begin(self) -> None:
        """All buckets are full, and nobody has passed."""
        self.level: dict[Hashable, tuple[float, float]] = {}
        """Of each tenant: tokens left, and when that was [s]."""
        self.passed: set[int] = set()
        """Who has passed, by index."""

    def schedule(self, state: State, *, holds: bool | None = True) -> Schedule:
        """Whoever must come again, if anybody; then as Continuous."""
        new = [request for request in state.waiting if request.index not in self.passed]
        told = {request: seconds for request in new if (seconds := self._wait(request, state.now)) != 0}
        return Schedule(reject=told) if told else super().schedule(state, holds=holds)

    def _wait(self, request: Request, now: float) -> int | None:
        """Seconds after which it is to come again; 0: it passes now, and pays; None: never."""
        tenant, cost = tenant_of(request), request.prompt_tokens + (request.guess or 0)
        if cost > self.burst:
            return None
        left, then = self.level.get(tenant, (self.burst, now))
        left = min(self.burst, left + self.tokens_per_second * (now - then))
        missing = cost - left
        if missing > 1e-9 * cost:  # less is rounding
            return max(1, math.ceil(missing / self.tokens_per_second))
        self.level[tenant] = left - cost, now
        self.passed.add(request.index)
        return 0
