"""Earliest deadline first: continuous batching that admits first what is due first."""

from typing import Any

from course.policies.base import Request
from course.policies.by_key import ByKey
from course.policies.continuous import MaxNumBatchedTokens
from course.policies.registry import MaxNumSeqs, registered


@registered("deadline")
class EarliestDeadline(ByKey):
    """Of those that wait, whose arrival + deadline is over first comes first; who has no deadline comes last.

    A request whose deadline has passed keeps its place in front. Out of blocks, what is due last gives way. Raises
    ValueError as Continuous does.
    """

    def __init__(self, max_num_seqs: MaxNumSeqs, max_num_batched_tokens: MaxNumBatchedTokens):
        super().__init__(max_num_seqs, max_num_batched_tokens)

    def key(self, request: Request) -> Any:
        """When it is due."""
        return request.due, request.index
