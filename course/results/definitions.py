"""What each metric means here, and what a tool means by the same word."""

from collections.abc import Mapping
from dataclasses import dataclass, field

OURS = {
    "ttft": "arrival to the first token of the answer",
    "tpot": "(E2E - TTFT) / (tokens - 1), one value a request; none for an answer of one token",
    "itl": "every gap between two tokens of one answer, all answers together",
    "e2e": "arrival to the last token of the answer",
    "queue_wait": "arrival to the first step that works on the request",
    "client_wait": "planned to sent: how long the client held the request back",
    "ttft_from_plan": "the moment at which the request was planned to the first token",
    "e2e_from_plan": "the moment at which the request was planned to the last token",
}


@dataclass(frozen=True)
class Definition:
    """One metric of one result file: what the tool measured, and what it comes to under the definition used here.

    tool, ours: the two definitions. same: whether they are one. value: statistic -> seconds under ours; empty if the
    file does not hold enough to say.
    """

    tool: str
    ours: str
    same: bool
    value: Mapping[str, float] = field(default_factory=dict)
