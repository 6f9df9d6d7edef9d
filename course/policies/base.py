"""What a policy sees and what it answers.

A policy decides one thing: which tokens run in the next step. The engine asks `schedule(state)` before every step,
checks the answer against slots, token budget and KV blocks, and executes it. Ten lines are enough for one of your own:

    class OneAtATime(Policy):
        max_num_seqs, max_num_batched_tokens = 8, 4096

        def schedule(self, state):
            turn = (state.running or state.waiting)[:1]
            return Schedule(tokens={request: request.remaining for request in turn})
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from course.base import settings
from course.memory.kvcache import blocks_for


class Request:
    """A request as a policy may see it. How long its answer will be is not here: nobody knows that in advance.

    index: its row in the workload. arrival: seconds. prompt_tokens. computed: tokens whose K and V are in the cache.
    emitted: output tokens so far. blocks: KV blocks it holds. guess: a predictor's guess of the answer's length, or
    None.
    """

    __slots__ = ("arrival", "blocks", "computed", "emitted", "guess", "index", "prompt_tokens")

    def __init__(self, index: int, arrival: float, prompt_tokens: int, guess: int | None = None):
        self.index, self.arrival, self.prompt_tokens, self.guess = index, arrival, prompt_tokens, guess
        self.computed = self.emitted = self.blocks = 0

    @property
    def known(self) -> int:
        """Tokens that must be in the cache before the next one can be sampled: the prompt and what was emitted."""
        return self.prompt_tokens + self.emitted

    @property
    def remaining(self) -> int:
        """Tokens to compute before the next one is emitted: 1 for a decode, more for a prompt."""
        return self.prompt_tokens + self.emitted - self.computed

    def facts(self) -> tuple:
        """What the engine knows of it; a policy may read all of this and change none."""
        return self.index, self.arrival, self.prompt_tokens, self.computed, self.emitted, self.blocks

    def __repr__(self) -> str:
        return f"Request({self.index}, prompt={self.prompt_tokens}, computed={self.computed}, emitted={self.emitted})"


@dataclass(frozen=True)
class State:
    """What a policy decides on. `waiting` is in order of arrival, preempted requests first; `running` of admission.

    free_blocks is infinite where memory is unlimited. no_more_arrivals: nobody will come unless an answer goes out.
    """

    now: float
    waiting: Sequence[Request]
    running: Sequence[Request]
    free_blocks: float
    block_size: int
    max_num_seqs: int
    max_num_batched_tokens: float
    no_more_arrivals: bool


@dataclass(frozen=True)
class Schedule:
    """A policy's answer for one step.

    tokens: how many tokens each request computes; a waiting request that gets some is admitted, in the order given.
    preempt: running requests that lose their blocks first and go back to the head of the queue, in the order given.
    wait_until: with no tokens, ask again at this time [s] (or at the next arrival, whichever is first).
    """

    tokens: Mapping[Request, int] = field(default_factory=dict)
    preempt: Sequence[Request] = ()
    wait_until: float = math.inf


class Policy:
    """Base of all policies: `max_num_seqs` slots, at most `max_num_batched_tokens` tokens a step.

    padded: True for request-level batching, where a finished request keeps its slot as padding until the batch ends and
    only then is answered.
    """

    max_num_seqs: int
    max_num_batched_tokens: float = math.inf
    padded: bool = False

    def check_settings(self) -> None:
        """Raises ValueError for settings that cannot be. `serve` asks too: they may have been changed since."""

    def schedule(self, state: State) -> Schedule:
        """Which tokens run in the next step."""
        raise NotImplementedError


@dataclass(frozen=True)
class Limits:
    """What the engine holds a policy to, read once when serving starts.

    Any object with `schedule` and `max_num_seqs` is a policy; what else Policy has, it need not.
    """

    max_num_seqs: int
    max_num_batched_tokens: float
    padded: bool

    @classmethod
    def of(cls, policy: object) -> "Limits":
        """Raises ValueError for a policy whose settings cannot be, now."""
        if isinstance(policy, Policy):
            policy.check_settings()
        name = type(policy).__name__
        budget = getattr(policy, "max_num_batched_tokens", math.inf)
        if not (isinstance(budget, float) and budget == math.inf):
            budget = settings.whole(f"{name}.max_num_batched_tokens", budget)
        return cls(
            settings.whole(f"{name}.max_num_seqs", getattr(policy, "max_num_seqs", None)),
            budget,
            settings.flag(f"{name}.padded", getattr(policy, "padded", False)),
        )


def blocks_needed(request: Request, tokens: int, block_size: int) -> int:
    """Blocks that the request takes from the free ones if it computes `tokens` more tokens."""
    return blocks_for(request.computed + tokens, block_size) - request.blocks
