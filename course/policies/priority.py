"""Priority: continuous batching that admits by level, with or without ageing."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from course.base import settings
from course.policies.base import Request
from course.policies.by_key import ByKey
from course.policies.continuous import MaxNumBatchedTokens
from course.policies.registry import Knob, MaxNumSeqs, registered


@registered("priority")
class Priority(ByKey):
    """The lowest level first, as with vLLM's --scheduling-policy priority; of one level, first come first served.

    The level of a request is `request.tags["priority"]`, 0 if it has none. Out of blocks, the last of the highest level
    gives way.
    ageing: seconds of waiting that make up for one level. A request of level n is then sorted as if it had come
    n x ageing seconds later: a head start that does not grow, however many wait. Infinite, as in vLLM: no wait makes up
    for a level, and high levels may wait for ever. 0: first come first served.

    Raises ValueError as Continuous does, and for ageing below 0 and a level that is no number.
    """

    def __init__(
        self,
        max_num_seqs: MaxNumSeqs,
        max_num_batched_tokens: MaxNumBatchedTokens,
        ageing: Annotated[float, Knob("Waiting that makes up for one level; inf: none does.", seconds=True)] = math.inf,
    ):
        self.ageing = ageing
        super().__init__(max_num_seqs, max_num_batched_tokens)

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for ageing below 0."""
        super().check_settings()
        if self.ageing != math.inf:
            self.ageing = settings.real("ageing", self.ageing, low=0, high=settings.MAX_SECONDS)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, ageing={self.ageing:g})"

    def key(self, request: Request) -> Any:
        """Level and arrival, or with ageing the arrival moved back by the level."""
        level = level_of(request)
        if self.ageing == math.inf:
            return level, request.arrival, request.index
        return request.arrival + self.ageing * level, level, request.index


def level_of(request: Request) -> float:
    """The level of a request: lower is served first. Raises ValueError for one that is no number."""
    level = request.tags.get("priority", 0) if isinstance(request.tags, Mapping) else 0
    if type(level) is int:
        return level
    return settings.real(f"the priority of request {request.index}", level, low=-settings.MAX_TOKENS)
