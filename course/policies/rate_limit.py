"""A rate limit for each tenant, at a gateway that answers 429 with Retry-After."""

import math

from course.policies.base import Request, Schedule, State
from course.policies.bucket import TokenBuckets
from course.policies.by_key import tenant_of
from course.policies.registry import registered


@registered("rate-limit")
class RateLimit(TokenBuckets):
    """A request whose tenant has too few tokens left is sent away, and comes again after as many seconds as it is told.

    If the bucket holds what it costs, it passes and is served first come first served. Else it is told the whole
    seconds after which the bucket will hold it, as Retry-After says them, and whoever comes first then gets them. One
    that costs more than `burst` is rejected for good. See TokenBuckets, which also says what is refused.
    """

    def begin(self) -> None:
        """All buckets are full, and nobody has passed."""
        super().begin()
        self.passed: set[int] = set()
        """Who has passed, by index."""

    def schedule(self, state: State, *, holds: bool | None = True) -> Schedule:
        """Whoever must come again, if anybody; then as Continuous."""
        new = [request for request in state.waiting if request.index not in self.passed]
        told = {request: seconds for request in new if (seconds := self._wait(request, state.now)) != 0}
        return Schedule(reject=told) if told else super().schedule(state, holds=holds)

    def _wait(self, request: Request, now: float) -> int | None:
        """Seconds after which it is to come again; 0: it passes now, and pays; None: never."""
        cost, left = self.cost(request), self.left(request, now)
        if cost > self.burst:
            return None
        missing = cost - left
        if missing > 1e-9 * cost:  # less is rounding
            return max(1, math.ceil(missing / self.tokens_per_second))
        self.level[tenant_of(request)] = left - cost, now
        self.passed.add(request.index)
        return 0
