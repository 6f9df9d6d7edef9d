"""Fair sharing: continuous batching in which the tenant that was served least comes next."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from heapq import heapify, heappop, heapreplace
from typing import Annotated

from course.base import settings
from course.policies.base import Policy, Request, State, copied
from course.policies.by_key import tenant_of
from course.policies.continuous import Continuous, MaxNumBatchedTokens
from course.policies.registry import Knob, MaxNumSeqs, registered
from course.policies.waiting import Waiting

Weights = Mapping[Hashable, float]


@registered("fair")
class Fair(Continuous):
    """The virtual token counter of Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024.

    Each tenant has a counter of what it was served: prompt_weight for each prompt token, when the request is admitted,
    and output_weight for each output token, divided by the tenant's weight. The tenant with the least counter is
    admitted next, its own requests in order. Of two tenants that both wait all the time, neither is ahead of the other
    by more than 2 max(prompt_weight x longest prompt, output_weight x tokens of a batch) [their theorem 4.4].

    lift: a tenant that had nobody waiting starts level with the least counter of those who wait, or with the tenant
    that left the queue last, as they stand when a slot is free next; the paper lifts at the arrival. Without it, it is
    served alone until it has caught up with all that it did not ask for.
    weights: {tenant: weight}, 1 for others; twice the weight is twice the service. Whose request it is:
    `by_key.tenant_of`.

    Raises ValueError as Continuous does, for weights that are not above 0, and if both token weights are 0.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        prompt_weight: Annotated[float, Knob("What a prompt token counts.")] = 1.0,
        output_weight: Annotated[float, Knob("What an output token counts.")] = 2.0,
        lift: Annotated[bool, Knob("Who comes back starts level with those who wait.")] = True,
        weights: Weights | None = None,
    ):
        self.prompt_weight, self.output_weight, self.lift = prompt_weight, output_weight, lift
        self.weights = {} if weights is None else weights
        self.begin()
        super().__init__(max_num_seqs, max_num_batched_tokens)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for weights that let nobody through."""
        super().check_settings()
        for name in ("prompt_weight", "output_weight"):
            setattr(self, name, settings.real(name, getattr(self, name), low=0, high=1e6))
        self.lift = settings.flag("lift", self.lift)
        if not self.prompt_weight + self.output_weight:
            raise ValueError("prompt_weight and output_weight are both 0: then nobody is ever ahead; set one above 0")
        if not isinstance(self.weights, Mapping):
            raise ValueError(f"weights must be a dict of tenants to numbers, not {settings.quote(self.weights)}")
        for tenant, weight in self.weights.items():
            try:
                settings.real(f"the weight of {settings.quote(tenant)}", weight, low=1e-6, high=1e6)
            except ValueError as error:
                raise ValueError(f"{error}; a tenant without weight would never be served") from None

    def __repr__(self) -> str:
        extras = "" if self.lift else ", lift=False"
        extras += f", weights={dict(self.weights)!r}" if self.weights else ""
        tokens = f"prompt_weight={self.prompt_weight:g}, output_weight={self.output_weight:g}"
        return f"{super().__repr__()[:-1]}, {tokens}{extras})"

    def fresh(self) -> Policy:
        """The same with all counters at 0."""
        made = copy(self)
        made.begin()
        return copied(made)

    def begin(self) -> None:
        """Nobody has been served."""
        self.counters: dict[Hashable, float] = {}
        self.charged: dict[Request, int] = {}
        """Requests with a slot, or that lost theirs, and the output tokens of each that are charged."""
        self.offered: list[Request] = []
        self.looked, self.level = -1.0, 0.0  # when `queue` was asked last [s]; the counter of who left it last

    def queue(self, state: State, waiting: Waiting) -> Iterable[Request]:
        """Requests that wait, the least served tenant's first. It holds for one step: tokens leave in each."""
        groups = waiting.grouped_by(tenant_of)
        new = [tenant for tenant, line in groups.items() if next(iter(line)).arrival > self.looked]
        if new or len(groups) > 1:  # among the requests of one tenant there is nothing to decide
            self._charge(state, waiting)
        if self.lift and new:
            self._lift(groups, new)
        self.looked = state.now
        return self.in_turn(groups)

    def _charge(self, state: State, waiting: Waiting) -> None:
        """Count what was served since the last look: prompts of those who got a slot, and tokens that left."""
        counters, charged, weight = self.counters, self.charged, self.weights
        left = [request for request in self.offered if request not in waiting]
        self.offered = []
        for request in left:
            tenant = tenant_of(request)
            if charged.setdefault(request, -1) < 0:
                charged[request] = 0
                tokens = self.prompt_weight * request.prompt_tokens
                counters[tenant] = counters.get(tenant, 0.0) + tokens / weight.get(tenant, 1.0)
        here, gone = set(state.running), []
        for request, before in charged.items():
            emitted = request.emitted
            if emitted > before:
                tenant = tenant_of(request)
                counters[tenant] += self.output_weight * (emitted - before) / weight.get(tenant, 1.0)
                charged[request] = emitted
            if request not in here and request not in waiting:
                gone.append(request)
        for request in gone:
            del charged[request]
        if left:
            self.level = counters[tenant_of(left[-1])]

    def _lift(self, groups: Iterable[Hashable], new: Sequence[Hashable]) -> None:
        """Who did not wait at the last look starts level with those who did."""
        level = min((self.counters.get(tenant, 0.0) for tenant in groups if tenant not in new), default=self.level)
        for tenant in new:
            self.counters[tenant] = max(self.counters.get(tenant, 0.0), level)

    def in_turn(self, groups: Mapping[Hashable, Iterable[Request]]) -> Iterator[Request]:
        """Those that wait, by tenant, in the order in which they are admitted; it notes whom it offers."""
        turns = [
            (self.counters.get(tenant, 0.0), place, tenant, iter(line))
            for place, (tenant, line) in enumerate(groups.items())
        ]
        heapify(turns)
        while turns:
            counter, place, tenant, line = turns[0]
            request = next(line, None)
            if request is None:
                heappop(turns)
                continue
            self.offered.append(request)
            yield request
            if request not in self.charged:
                counter += self.prompt_weight * request.prompt_tokens / self.weights.get(tenant, 1.0)
            heapreplace(turns, (counter, place, tenant, line))
