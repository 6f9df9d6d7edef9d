"""A token bucket for each tenant, at a gateway in front of continuous batching."""

from bisect import bisect_right, insort
from collections.abc import Hashable, Iterable, Iterator
from copy import copy
from typing import Annotated

from course.base import settings
from course.policies.base import Order, Policy, Request, State, copied
from course.policies.by_key import tenant_of
from course.policies.continuous import Continuous, MaxNumBatchedTokens
from course.policies.registry import Knob, MaxNumSeqs, registered
from course.policies.waiting import Waiting

SLOWEST = 1e-3  # tokens/s: below it a bucket lets nobody through within a day


class TokenBuckets(Continuous):
    """Continuous batching with a bucket of tokens for each tenant; what an empty one means is a subclass's matter.

    A bucket starts full, and fills by `tokens_per_second` up to `burst` tokens. A request costs its prompt and what its
    `guess` says of the answer: a gateway knows no more. Whose request it is: `by_key.tenant_of`.

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
        """All buckets are full."""
        self.level: dict[Hashable, tuple[float, float]] = {}
        """Of each tenant: tokens left when its last request passed, and when that was [s]."""

    def cost(self, request: Request) -> float:
        """Tokens that it takes from its tenant's bucket."""
        return request.prompt_tokens + (request.guess or 0)

    def left(self, request: Request, now: float) -> float:
        """Tokens in its tenant's bucket now [s]."""
        left, then = self.level.get(tenant_of(request), (self.burst, now))
        return min(self.burst, left + self.tokens_per_second * (now - then))


@registered("bucket")
class Bucket(TokenBuckets):
    """A request waits at the gateway until the bucket of its tenant holds what it costs, even if the card is idle.

    It pays for its tenant's requests in order of arrival; behind the gateway, who passed first is admitted first. See
    TokenBuckets.

    Raises ValueError as TokenBuckets does, and while serving for a request that costs more than `burst`: no bucket
    would ever let it through.
    """

    def begin(self) -> None:
        """All buckets are full, and nobody has passed."""
        super().begin()
        self.passed: dict[int, float] = {}
        """When each request passes [s], by its index."""
        self.times: list[float] = []

    def passes(self, request: Request) -> float:
        """When the request passes the gateway [s]. Asked in order of arrival: each takes from what is left."""
        known = self.passed.get(request.index)
        if known is not None:
            return known
        tenant, cost = tenant_of(request), self.cost(request)
        if cost > self.burst:
            raise ValueError(
                f"request {request.index} of {settings.quote(tenant)} costs {cost:g} tokens, and a full bucket holds "
                f"{self.burst:g}: it would never pass; raise burst, or refuse such requests"
            )
        now = max(self.level.get(tenant, (0.0, request.arrival))[1], request.arrival)
        left = self.left(request, now)
        now += max(0.0, cost - left) / self.tokens_per_second
        self.level[tenant] = max(left, cost) - cost, now
        self.passed[request.index] = now
        insort(self.times, now)
        return now

    def queue(self, state: State, waiting: Waiting) -> Order:
        """Who has passed, the first first; until the next one passes."""
        order, now = waiting.sorted_by(self.passes), state.now
        place = bisect_right(self.times, now)
        return Order(self._until(now, order), self.times[place] if place < len(self.times) else float("inf"))

    def _until(self, now: float, order: Iterable[Request]) -> Iterator[Request]:
        for request in order:
            if self.passed[request.index] > now:
                return
            yield request
