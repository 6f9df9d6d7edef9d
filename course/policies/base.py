"""What a policy sees and what it answers.

A policy decides one thing: which tokens run in the next step. The engine asks `schedule(state)`, checks the answer
against slots, token budget and KV blocks, and executes it. Ten lines are enough for one of your own, which is asked
before every step:

    class OneAtATime(Policy):
        max_num_seqs, max_num_batched_tokens = 8, 4096

        def schedule(self, state):
            turn = (state.running or state.waiting)[:1]
            return Schedule(tokens={request: request.remaining for request in turn})

A policy whose answer holds for a while says so with `until`, and is served many times faster, since the engine then
takes all steps up to the next change at once. The answer below holds for as long as no request comes or goes: those
that wait then wait for a slot, and all others decode:

    class Refill(Policy):
        max_num_seqs = 8

        def schedule(self, state):
            newcomers = state.waiting[: state.free_slots]
            tokens = {request: request.remaining for request in newcomers}
            return Schedule(tokens, decodes=True, until=math.inf)
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from course.base import settings
from course.memory.block_pool import Plan, blocks_for
from course.policies.request import Request
from course.policies.waiting import Waiting

Engine = Any  # course.engine.serving.Engine, which stands above: a policy sees it through State and Request only


class State:
    """What a policy decides on: the engine at the present moment. One object, brought up to date before each question.

    now: seconds. decodes: how many of those with a slot decode; each has one token to compute. prefilling: the others
    with a slot, whose prompt is not complete, or which got no turn in the last step. free_slots: slots that are free.
    waiting: those without a slot: preempted ones first, then in order of arrival; or in an order of one's own.
    block_size: tokens of a KV block. max_num_seqs: slots.
    """

    __slots__ = (
        "_engine", "block_size", "decodes", "free_slots", "max_num_seqs", "now", "prefilling", "waiting",
    )  # fmt: skip

    waiting: Waiting
    now: float
    decodes: int
    prefilling: Sequence[Request]
    free_slots: int

    def __init__(self, engine: Engine):
        self._engine, self.block_size = engine, engine.pool.block_size
        self.max_num_seqs, self.waiting = engine.limits.max_num_seqs, engine.waiting

    @property
    def max_num_batched_tokens(self) -> float:
        """The most tokens of a step, infinite without a limit. The policy may say another in each."""
        return self._engine.limits.max_num_batched_tokens

    @property
    def running(self) -> Sequence[Request]:
        """Those with a slot, in order of admission."""
        shown = self._engine.running_shown
        return self._engine.running if shown is None else shown

    @property
    def free_blocks(self) -> float:
        """KV blocks that no request holds, infinite if memory is unlimited."""
        return self._engine.pool.free

    @property
    def num_blocks(self) -> float:
        """KV blocks in all, infinite where memory is unlimited."""
        return self._engine.pool.num_blocks

    @property
    def spare_blocks(self) -> float:
        """Free blocks once all decodes have what they need in the coming step; below 0 if they cannot all run."""
        return self._engine.pool.free - self._engine.due

    @property
    def decode_context(self) -> int:
        """Tokens that those who decode attend to in the coming step, the new one of each included, summed."""
        return self._engine.context

    @property
    def last_step_end(self) -> float:
        """When the last step ended [s], 0 before the first; earlier than `now` if nothing ran since."""
        return self._engine.last_step_end

    @property
    def no_more_arrivals(self) -> bool:
        """Whether no request will come unless an answer goes out."""
        return self._engine.no_more_arrivals

    def plan(self, *, decodes: bool = True) -> Plan:
        """A scratch copy of the KV blocks, to see what fits. decodes: what all decodes need in this step is taken."""
        engine = self._engine
        return engine.pool.plan(engine.due, engine.decoding) if decodes else engine.pool.plan()


NOTHING: Mapping[Request, int] = MappingProxyType({})


class Schedule:
    """A policy's answer for one step, or for a stretch of them.

    tokens: how many tokens each request computes; a waiting request that gets some is admitted, in the order given.
    preempt: running requests that lose their blocks first and go back to the head of the queue, in the order given.
    decodes: True: each request that decodes gets one token, besides those in `tokens`.
    until: a time [s] up to which the answer holds: asked again before it, with no request arrived or gone and blocks
        enough for all decodes, the policy would let all decode and nothing else. None: ask before every step. If
        nothing runs: wait until then, or until a request arrives.
    drafts: tokens drafted for each request that decodes in this step, or a dict of such requests to tokens.
        They are verified in the same step, and count against its budget and the blocks. Needs an executor that
        verifies.
    reject: waiting requests that are sent away unanswered, before all else. An answer that does nothing besides takes
        no time: the policy is asked again at once, without them. A dict of them to seconds, as in the header
        Retry-After: those come again so much later, and whoever has None does not.
    """

    __slots__ = ("decodes", "drafts", "preempt", "reject", "tokens", "until")

    def __init__(
        self,
        tokens: Mapping[Request, int] = NOTHING,
        preempt: Sequence[Request] = (),
        decodes: bool = False,
        until: float | None = None,
        drafts: int | Mapping[Request, int] = 0,
        reject: Sequence[Request] | Mapping[Request, float | None] = (),
        **unknown: Any,
    ):
        self.tokens, self.preempt, self.decodes, self.until, self.drafts = tokens, preempt, decodes, until, drafts
        self.reject = reject
        if unknown:
            _refuse_unknown(unknown)

    def __repr__(self) -> str:
        drafts = f", drafts={self.drafts!r}" if self.drafts else ""
        drafts += f", reject={self.reject!r}" if self.reject else ""
        return f"Schedule({self.tokens!r}, {self.preempt!r}, decodes={self.decodes!r}, until={self.until!r}{drafts})"


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    if "wait_until" in given:
        raise ValueError("Schedule has no wait_until any more: to run nothing and wait, say Schedule(until=...)")
    raise ValueError(
        f"Schedule has tokens, preempt, decodes, until, drafts and reject, and nothing called {', '.join(given)}"
    )


class _Shared(Schedule):
    """An answer that all policies share, and that none may change."""

    __slots__ = ()

    def __init__(self, **given: Any):
        for name, value in given.items():
            Schedule.__dict__[name].__set__(self, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError(f"this answer is shared by all policies: make a Schedule of your own to change its {name}")


# All requests that decode go on, until something changes.
DECODES: Schedule = _Shared(tokens=NOTHING, preempt=(), decodes=True, until=math.inf, drafts=0, reject=())


class Order:
    """Requests that wait, in the order in which they are admitted, and for how long this order holds.

    requests: any iterable; what is not in it is not admitted. until: a time [s] up to which the order stays as it is:
        asked again before it, with none arrived or sent back, it would be the same without those that were admitted.
    """

    __slots__ = ("requests", "until")

    def __init__(self, requests: Iterable[Request], until: float = math.inf):
        self.requests, self.until = requests, until

    def __iter__(self) -> Iterator[Request]:
        return iter(self.requests)

    def __repr__(self) -> str:
        return f"Order({self.requests!r}, until={self.until!r})"


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

    def fresh(self) -> "Policy":
        """One like this that has served nothing yet; `serve` serves such a copy, and so leaves this one as it is.

        Every attribute is copied too, except those that Python cannot copy, such as open files: both share them.
        """
        return copied(self)

    def schedule(self, state: State) -> Schedule:
        """Which tokens run in the next step."""
        raise NotImplementedError


def fresh(policy: Any) -> Any:
    """What `policy.fresh()` gives, or a copy of one without such a method. ValueError for anything but a policy."""
    made = policy.fresh() if callable(getattr(policy, "fresh", None)) else copied(policy)
    if not callable(getattr(made, "schedule", None)):
        raise ValueError(f"{type(policy).__name__}.fresh must return a policy like itself, not {settings.quote(made)}")
    return made


def copied(policy: Any) -> Any:
    """A copy of the policy with copies of its attributes, of those at least that Python can copy."""
    try:
        return deepcopy(policy)
    except Exception:  # a generator, a lock, a module, or whatever its own __deepcopy__ raises
        twin = copy(policy)
    for name, value in list(vars(twin).items()):  # setting one may add another
        with suppress(Exception):
            setattr(twin, name, deepcopy(value))
    return twin


@dataclass(frozen=True)
class Limits:
    """What the engine holds a policy to: read when serving starts, and the token budget of a step with each answer.

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
        return cls(
            settings.whole(f"{name}.max_num_seqs", getattr(policy, "max_num_seqs", None)),
            _budget(policy),
            settings.flag(f"{name}.padded", getattr(policy, "padded", False)),
        )

    def with_budget(self, policy: object) -> "Limits":
        """The same with the token budget that the policy has now. Raises ValueError for one that cannot be."""
        return replace(self, max_num_batched_tokens=_budget(policy))


def _budget(policy: object) -> float:
    budget = getattr(policy, "max_num_batched_tokens", math.inf)
    if isinstance(budget, float) and budget == math.inf:
        return budget
    return settings.whole(f"{type(policy).__name__}.max_num_batched_tokens", budget)


def blocks_needed(request: Request, tokens: int, block_size: int) -> int:
    """Blocks that the request takes from the free ones if it computes `tokens` more tokens."""
    engine = request.life.engine
    return blocks_for(request.computed + tokens, block_size) if engine is None else engine.pool.need(request, tokens)
