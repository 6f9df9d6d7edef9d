"""A request from the moment it comes to the server until its answer is complete."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from course.lm.sampling import GREEDY, Sampling
from course.policies.base import Request


@dataclass(eq=False)
class Ticket:
    """One request on its way.

    said: called in the engine's thread with (text, ended) at each token; ended is "" while the answer goes on, then
    "stop", "length", or "error" with a sentence as the text. The other arguments as in `Speaking.ask`.
    created, started, first, last: seconds on time.monotonic; when it came, when its first step began, its tokens.
    """

    tokens: Sequence[int]
    said: Callable[[str, str], None]
    max_tokens: int | None = None
    sampling: Sampling = GREEDY
    number: int | None = None
    ignore_end: bool = False
    stop: Sequence[str] = ()
    created: float = field(default_factory=time.monotonic)
    started: float = 0.0
    first: float = 0.0
    last: float = 0.0
    emitted: int = 0
    request: Request | None = None
