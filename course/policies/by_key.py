"""By key: continuous batching whose queue is sorted by a function of the request."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from course.base import settings
from course.policies.base import Order, Request, State
from course.policies.continuous import Continuous
from course.policies.waiting import Waiting


class ByKey(Continuous):
    """As Continuous, but who has the least key is admitted first, and who has the largest gives way for blocks.

        policies.ByKey(256, 8_192, key=lambda request: request.class_ != "chat")

    key: from a request to something that can be sorted, and that never changes for a request; equal ones keep their
    order. others: settings of Continuous. A subclass may have a method `key` in its place. Nobody who runs is sent away
    while there are blocks, and a request with a large key waits for as long as others come. Raises ValueError as
    Continuous does, and for a key that cannot be called.
    """

    def __init__(
        self,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        key: Callable[[Request], Any] | None = None,
        **others: Any,
    ):
        if key is not None:
            self.key = key  # type: ignore[method-assign, assignment]
        super().__init__(max_num_seqs, max_num_batched_tokens, **others)

    def key(self, request: Request) -> Any:
        """What requests are sorted by: the order of arrival, as long as nothing else is given."""
        return request.arrival, request.index

    def check_settings(self) -> None:
        """Raises ValueError as Continuous does, and for a key that cannot be called."""
        super().check_settings()
        if not callable(self.key):
            raise ValueError(f"key must be a function of a request, not {settings.quote(self.key)}")

    def queue(self, state: State, waiting: Waiting) -> Order:
        """Requests that wait, by their key: an order that time does not change."""
        return Order(waiting.sorted_by(self.key))

    def victim(self, state: State, running: Sequence[Request]) -> Request:
        """Which request gives way if blocks are short: the last by the key; of equal ones the one admitted last."""
        return max(reversed(running), key=self.key)


def tenant_of(request: Request) -> Hashable:
    """Whose request it is: its tenant, or its class if it has none."""
    return request.class_ if request.tenant is None else request.tenant
