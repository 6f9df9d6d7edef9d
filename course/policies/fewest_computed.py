"""Fewest computed: continuous batching that sends away whoever loses least."""

from collections.abc import Sequence

from course.policies.base import Request, State
from course.policies.continuous import Continuous
from course.policies.registry import registered


@registered("fewest-computed")
class FewestComputed(Continuous):
    """As Continuous, but out of blocks the running request with the fewest computed tokens gives way.

    Of equal ones the one admitted last does, as in vLLM. Little is computed again for each preemption; little is freed
    by it as well, so there are more of them.
    """

    def victim(self, state: State, running: Sequence[Request]) -> Request:
        """Whoever has computed least."""
        return min(reversed(running), key=lambda request: request.computed)
