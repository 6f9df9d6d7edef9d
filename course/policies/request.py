"""A request: what a policy may read of it, and behind that what its engine keeps of it."""

import math
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from course.base import settings

SLO = Any  # course.workload.slo.SLO, which need not be imported to name a policy: that takes NumPy


class Life:
    """What an engine keeps of one request, and changes. A policy reads the Request, which is a view of this.

    row: in the workload. labels: class_, tenant, prefix, guess, tags, deadline, prefix_block_size,
    prefix_answers, slo, patience. engine: the one that serves it, None before and after.
    emitted_before, computed_before: output tokens and tokens in the cache when its decodes under way began; now, if
    it does not decode. decodes_from: the first step of those decodes, -1 if it does not decode. The counters of a
    request that decodes so follow from the number of the step, and a step costs nothing for those that only go on.
    leaves_at: the first step without it, -1 while that is not known. plain: its prompt was computed whole, in the step
    of its first token, and nothing has interrupted it since.
    admitted: the step in which it got its slot. tokens_from: the step of the first token since it last stood still.
    known_first: what was known of it in the first of its decodes under way.
    elsewhere: tokens of its prompt whose K and V it brings when it gets its slot for the first time.
    """

    __slots__ = (
        "admitted", "arrival", "computed_before", "decodes_from", "elsewhere", "emitted_before", "engine",
        "known_first", "labels", "leaves_at", "plain", "prompt_tokens", "row", "tokens_from",
    )  # fmt: skip

    arrival: float
    prompt_tokens: int
    row: int
    engine: Any
    labels: tuple
    emitted_before: int
    computed_before: int
    decodes_from: int
    elsewhere: int
    leaves_at: int
    plain: bool
    admitted: int
    tokens_from: int
    known_first: int

    @property
    def emitted(self) -> int:
        """Output tokens so far."""
        if self.decodes_from < 0:
            return self.emitted_before
        return self.emitted_before + self.engine.steps - self.decodes_from

    @property
    def computed(self) -> int:
        """Tokens whose K and V are in the cache."""
        if self.decodes_from < 0:
            return self.computed_before
        return self.computed_before + self.engine.steps - self.decodes_from


def new_life(arrival: float, prompt_tokens: int, row: int, engine: Any, labels: tuple) -> Life:
    """The Life of a request before its first step. A constructor takes twice as long, and a run makes thousands."""
    life: Life = _new(Life)
    life.arrival, life.prompt_tokens, life.row, life.engine, life.labels = arrival, prompt_tokens, row, engine, labels
    life.emitted_before = life.computed_before = life.elsewhere = 0
    life.decodes_from = life.leaves_at = -1
    life.plain = True
    return life


_new = object.__new__


def _computed(request: "Request") -> int:
    """`Life.computed`, sooner."""
    life = request.life
    if life.decodes_from < 0:
        return life.computed_before
    return life.computed_before + life.engine.steps - life.decodes_from


def _read_only(name: str, doc: str, read: Callable[[Any], Any] | None = None) -> Any:
    """A property. read: how it is read, if it is more than what `Life` calls so."""
    return property(read or attrgetter(f"life.{name}"), doc=doc)


class Request:
    """A request as a policy may see it. How long its answer will be is not here: no engine knows that in advance.

    computed: tokens of its prompt whose K and V come from elsewhere, such as an engine that computed the prompt. It
        takes blocks for them when it gets its slot, and computes the rest. Of a prompt that comes whole the last token
        is computed again, as in vLLM: somebody must say what follows. Lost by a preemption, like all else.
    """

    __slots__ = ("life", "remaining")

    life: Life
    remaining: int
    """Tokens to compute before the next one is emitted: 1 for a decode, more for a prompt that is not in the cache.

    0 if its answer is complete and, with async scheduling, it holds its slot for one step more.
    Policies read it more often than all else. So it is a slot that engines fill if they know it, as while a request
    decodes; else it is worked out (`__getattr__`).
    """

    def __init__(
        self,
        arrival: float,
        prompt_tokens: int,
        *,
        class_: int | str | None = None,
        tenant: int | str | None = None,
        prefix: tuple = (),
        guess: float | None = None,
        tags: Mapping[str, Any] | tuple = (),
        deadline: float | None = None,
        slo: SLO | None = None,
        patience: float | None = None,
        prefix_block_size: int | None = None,
        prefix_answers: bool = False,
        computed: int = 0,
        index: int = -1,
    ):
        if deadline is None:
            deadline = getattr(slo, "ttft", None)
        labels = class_, tenant, prefix, guess, tags, deadline, prefix_block_size, prefix_answers, slo, patience
        give_life(self, new_life(arrival, prompt_tokens, index, None, labels))
        self.life.elsewhere = computed

    index = _read_only("index", "Its row in the workload.", attrgetter("life.row"))
    arrival = _read_only("arrival", "When it came, in seconds.")
    prompt_tokens = _read_only("prompt_tokens", "Tokens of its prompt.")
    class_ = _read_only("class_", "The kind of traffic it belongs to, or None.", lambda self: self.life.labels[0])
    tenant = _read_only("tenant", "Whose it is, or None.", lambda self: self.life.labels[1])
    prefix = _read_only(
        "prefix",
        "Hashes of the blocks of its prompt, each standing for all up to there.",
        lambda self: self.life.labels[2],
    )
    prefix_block_size = _read_only(
        "prefix_block_size", "Tokens of such a block, or None.", lambda self: self.life.labels[6]
    )
    prefix_answers = _read_only(
        "prefix_answers", "Whether the hashes go on over its answer.", lambda self: self.life.labels[7]
    )
    guess = _read_only(
        "guess", "A predictor's guess of the tokens of its answer, or None.", lambda self: self.life.labels[3]
    )
    tags = _read_only(
        "tags", "What else is known of it: a mapping, or a tuple of labels.", lambda self: self.life.labels[4]
    )
    deadline = _read_only(
        "deadline",
        "Seconds after its arrival in which it should be served: its own, else the TTFT of its SLO, or None.",
        lambda self: self.life.labels[5],
    )
    due = _read_only(
        "due",
        "When its deadline is over, in seconds like its arrival; infinite without one.",
        lambda self: math.inf if self.life.labels[5] is None else self.life.arrival + self.life.labels[5],
    )

    slo = _read_only("slo", "What was promised to it (`SLO`), or None.", lambda self: self.life.labels[8])

    elsewhere = _read_only("elsewhere", "Tokens of its prompt whose K and V it brought, or will.")
    emitted = _read_only("emitted", "Output tokens so far.")
    computed = property(_computed, doc="Tokens whose K and V are in the cache.")
    known = _read_only(
        "known",
        "Tokens that must be in the cache before the next one can be sampled: the prompt and what was emitted.",
        lambda self: self.life.prompt_tokens + self.life.emitted,
    )
    blocks = _read_only(
        "blocks",
        "KV blocks that it holds.",
        lambda self: 0 if self.life.engine is None else self.life.engine.pool.held(self),
    )

    def __getattr__(self, name: str) -> Any:
        if name != "remaining":
            raise AttributeError(f"a Request has no attribute {name!r}")
        life = self.life
        there = life.computed_before
        if not there and life.engine is not None:
            there = life.engine.pool.hit(self)
        return max(1, life.prompt_tokens + life.emitted_before - there)  # padding is computed beyond what remains

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError(
            f"a policy changed a request: it set {name} of {self!r} to {settings.quote(value)}; a policy may only "
            "read requests, so keep notes of your own elsewhere, by request.index"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ValueError(
            f"{self!r} cannot be copied or pickled: it is a view of its engine; keep what you need of it, by its index"
        )

    def __repr__(self) -> str:
        return f"Request({self.index}, prompt={self.prompt_tokens}, computed={self.computed}, emitted={self.emitted})"


# For the engine alone.
give_life = vars(Request)["life"].__set__
fill_remaining = vars(Request)["remaining"].__set__
empty_remaining = vars(Request)["remaining"].__delete__
