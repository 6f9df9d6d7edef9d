"""A policy's answer, looked at before it is executed. Every rule that it breaks has its sentence."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np

from course.base import settings
from course.engine.step import LONGEST
from course.memory.block_pool import BlockPool, Plan
from course.policies.base import NOTHING, Limits, Request, Schedule

MOST_DRAFTS = 1_000  # tokens of a request in a step
RETRIES = 1_000  # times that one request may be told to come again
PATIENCE = 20_000  # times in a row that a policy may wait, or preempt, while no token leaves


class Broken(ValueError):
    """An answer that cannot be executed.

    rule: a short name of the rule that it breaks, which stays the same when the sentence is rewritten: "kind",
    "unknown", "chunk", "budget", "slots", "blocks", "preempt", "reject", "idle", "fruitless", "drafts", "padded-join",
    "padded-chunk", "padded-all", "padded-preempt". requests: those that it is about.
    """

    def __init__(self, sentence: str, rule: str, requests: Iterable[Request] = ()):
        super().__init__(sentence)
        self.rule, self.requests = rule, tuple(requests)


def broken(engine: Any, error: Broken) -> Broken:
    """The same with the policy and the moment in front, as `serve` raises it."""
    name = type(engine.policy).__name__
    sentence = f"{name}.schedule broke the rules in step {engine.steps} (at {engine.now:.6g} s): {error}"
    return Broken(sentence, error.rule, error.requests)


@contextmanager
def rules(engine: Any) -> Iterator[None]:
    """While an engine serves. One whose answer broke a rule can go on; after another error it cannot."""
    engine.must_rest()
    engine.serving = True
    try:
        yield
    except Broken as error:
        engine.serving = False
        raise broken(engine, error) from None
    engine.serving = False


def checked(answer: Any, policy: object) -> Schedule:
    """The answer with a plain dict and a plain time. Another kind of dict, of number or of Schedule is read once.

    Raises ValueError for anything but a Schedule, and Broken if one of its parts is of the wrong kind.
    """
    if (
        type(answer) is Schedule and type(answer.tokens) is dict and type(answer.preempt) is tuple
        and type(answer.decodes) is bool and (answer.until is None or answer.until is math.inf)
        and type(answer.drafts) is int and type(answer.reject) is tuple
    ):  # fmt: skip
        return answer  # what most answers look like, sooner
    if not isinstance(answer, Schedule):
        raise ValueError(
            f"{type(policy).__name__}.schedule must return a Schedule, not {settings.quote(answer)}; "
            "an idle step is Schedule()"
        )
    tokens, preempt, decodes, until = answer.tokens, answer.preempt, answer.decodes, answer.until
    drafts, reject = answer.drafts, answer.reject
    if type(tokens) is not dict and tokens is not NOTHING and not isinstance(tokens, Mapping):
        raise Broken(f"tokens must be a dict of requests to token counts, not {settings.quote(tokens)}", "kind")
    if type(preempt) is not tuple and not isinstance(preempt, Sequence):
        raise Broken(f"preempt must be a list of requests, not {settings.quote(preempt)}", "kind")
    if type(reject) is not tuple and not isinstance(reject, Sequence | Mapping):
        raise Broken(
            f"reject must be a list of requests, or a dict of them to seconds, not {settings.quote(reject)}", "kind"
        )
    if type(decodes) is not bool:
        raise Broken(f"decodes must be True or False, not {settings.quote(decodes)}", "kind")
    if until is not None and type(until) is not float and (isinstance(until, bool) or not isinstance(until, Real)):
        raise Broken(f"until must be a time in seconds or None, not {settings.quote(until)}", "kind")
    if until is not None and until != until and (tokens or decodes):
        raise Broken("until must be a time in seconds or None, not nan", "kind")
    if not isinstance(drafts, Mapping | int) or isinstance(drafts, bool):
        raise Broken(
            f"drafts must be a whole number or a dict of requests to them, not {settings.quote(drafts)}", "kind"
        )
    plain = type(answer) is Schedule and (type(tokens) is dict or tokens is NOTHING)
    if plain and (until is None or type(until) is float):
        return answer
    return Schedule(tokens if tokens is NOTHING else dict(tokens), preempt, decodes, _seconds(until), drafts, reject)


def _seconds(until: Any) -> float | None:
    """Any real number as a float; one that no float holds as an infinite one."""
    try:
        return None if until is None else float(until)
    except OverflowError:
        return math.inf if until > 0 else -math.inf


def unknown(request: object) -> Broken:
    """For a request that is none of this engine's, or has its answer already."""
    return Broken(
        f"it runs {settings.quote(request)}, which is neither running nor waiting", "unknown", _if_one(request)
    )


def not_running(victim: object) -> Broken:
    """For a preemption of a request without a slot."""
    return Broken(f"it preempts {settings.quote(victim)}, which is not running", "preempt", _if_one(victim))


def rejects_of(schedule: Schedule, engine: Any) -> dict[Request, float | None]:
    """Those that the answer sends away, and in how many seconds they come again; None: never.

    Raises Broken for one that does not wait or that it runs too, for no time, and for one that can only go for good.
    """
    waiting = engine.waiting
    reject, found = tuple(schedule.reject), dict[Request, float | None]()  # perhaps a view of those that wait
    for place, request in enumerate(reject):
        if type(request) is not Request or request not in waiting or request in reject[:place]:
            raise Broken(
                f"it rejects {settings.quote(request)}, which does not wait: reject each once, before it gets a slot",
                "reject",
                _if_one(request),
            )
        if request in schedule.tokens:
            raise Broken(f"it rejects {request!r} and gives it tokens: do one of the two", "reject", (request,))
        found[request] = schedule.reject[request] if isinstance(schedule.reject, Mapping) else None
        if found[request] is not None:
            found[request] = _later(request, found[request], engine)
    return found


def _later(request: Request, seconds: Any, engine: Any) -> float:
    """In how many seconds it comes again. Raises Broken if it cannot."""
    try:
        seconds = settings.real(f"the seconds after which {request!r} comes again", seconds, above=0, high=LONGEST)
    except ValueError as error:
        raise Broken(str(error), "reject", (request,)) from None
    if request not in engine.queue:
        sentence = f"it tells {request!r} to come again, which had a slot before: reject it for good, or let it wait"
        raise Broken(sentence, "reject", (request,))
    if engine.notes.retries.get(request.index, 0) >= RETRIES:
        raise Broken(
            f"it has told {request!r} to come again {RETRIES:,} times: let it in, or reject it for good",
            "reject",
            (request,),
        )
    return seconds


def _if_one(given: object) -> tuple[Request, ...]:
    return (given,) if type(given) is Request else ()


def preempts_only(pool: BlockPool, victims: Sequence[Request]) -> ValueError:
    """For an answer that sends requests away and runs nothing: the policy's fault, unless it had no choice."""
    for victim in victims:
        if pool.blocks_for(victim.known) > pool.num_blocks:
            return ValueError(
                f"{victim!r} has outgrown the cache of {pool.num_blocks} KV blocks: raise num_blocks, or end its "
                "answer earlier"
            )
    return Broken("it preempts but runs nothing: give tokens to at least one request", "idle", victims)


def idle(until: Any) -> Broken:
    """For an answer that runs nothing and waits until a time that is not later than now."""
    return Broken(f"it runs nothing and waits until {settings.quote(until)}, which is not later than now", "idle")


def stuck(engine: Any) -> Broken:
    """For an answer that runs nothing although nothing will change by waiting."""
    running, waiting = engine.running, engine.waiting
    return Broken(
        f"it runs nothing although {len(running)} requests are running and {len(waiting)} "
        f"wait, and nothing will change by waiting: give tokens to at least one request",
        "idle",
        (*running, *waiting),
    )


def chunk_of(request: Request, chunk: Any, remaining: int, joins: bool = False) -> int:
    """The tokens that a request computes of those that the answer gives to it, of which `remaining` can be computed.

    joins: whether it gets its slot in this step; one that is given more than remains then computes what remains.
    """
    if remaining < 1:
        raise ValueError(
            f"the cache says that all {request.known} tokens of {request!r} are there, and at least the last one must "
            "be computed: `hit` and `admit` must say less"
        )
    try:
        chunk = settings.whole(f"the tokens of {settings.quote(request)}", chunk)
    except ValueError as error:
        raise Broken(str(error), "chunk", (request,)) from None
    if chunk > remaining and not joins:
        raise Broken(
            f"it gives {chunk} tokens to {request!r}, which has {remaining} left to compute", "chunk", (request,)
        )
    return min(chunk, remaining)


def too_much(limits: Limits, free_slots: int, tokens: int, pool: BlockPool, requests: Iterable[Request]) -> Broken:
    """What a step takes too much of, once all that join have joined and have their blocks. requests: of the step."""
    slots = limits.max_num_seqs
    if tokens > limits.max_num_batched_tokens:
        sentence = f"it runs {tokens} tokens, and max_num_batched_tokens is {limits.max_num_batched_tokens}"
        return Broken(sentence, "budget", requests)
    if free_slots < 0:
        return Broken(f"it needs {slots - free_slots} slots, and max_num_seqs is {slots}", "slots", requests)
    return no_blocks(pool, -pool.free, requests)


def no_blocks(pool: BlockPool, missing: float, requests: Iterable[Request]) -> Broken:
    """For a step that takes more blocks than are free."""
    return Broken(
        f"it takes {missing} KV blocks more than the cache of {pool.num_blocks} has: preempt a request, or admit fewer",
        "blocks",
        requests,
    )


def fruitless(patience: int, victims: Sequence[Request]) -> Broken:
    """For an answer that sends requests away again and again."""
    return Broken(
        f"it has preempted {patience:,} times since the last token left, and each time everything that had been "
        "computed was lost: let a request finish",
        "fruitless",
        victims,
    )


def drafts_of(schedule: Schedule, decodes: Collection[Request], engine: Any) -> dict[Request, int]:
    """Request -> tokens drafted for it. decodes: those that compute one token in this step. Raises Broken."""
    given, drafts = schedule.drafts, dict[Request, int]()
    for request, count in ({} if isinstance(given, int) else given).items():
        if type(request) is not Request or request not in decodes:
            sentence = f"it drafts for {settings.quote(request)}, which does not decode in this step"
            raise Broken(sentence, "drafts", _if_one(request))
        drafts[request] = _whole_drafts(count)
    if isinstance(given, int):
        drafts = dict.fromkeys(decodes, _whole_drafts(given))
    drafts = {request: count for request, count in drafts.items() if count}
    if not drafts:
        return drafts
    name = type(engine.executor).__name__
    if not engine.executor.verifies:
        raise Broken(
            f"it drafts tokens, which {name} cannot verify: serve it with engine.speculative.Speculative, or leave "
            "drafts at 0",
            "drafts",
            drafts,
        )
    for what, on in (
        ("in a padded batch, which counts on one token of each in a step", engine.limits.padded),
        (
            "with async_scheduling, where a step is planned before it is known what was accepted",
            getattr(engine, "async_scheduling", False),
        ),
    ):
        if on:
            raise Broken(f"it drafts tokens {what}: that is not modelled, leave drafts at 0", "drafts", drafts)
    return drafts


def blocks_of(drafts: Mapping[Request, int], block_size: int) -> int:
    """Blocks that hold these drafts, beside those of what their requests compute in the step."""
    there = ((request.computed + 1, more) for request, more in drafts.items())
    return sum(-(-(tokens + more) // block_size) - -(-tokens // block_size) for tokens, more in there)


def _whole_drafts(count: Any) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count <= MOST_DRAFTS:
        raise Broken(f"drafts are whole numbers from 0 to {MOST_DRAFTS:,}, not {settings.quote(count)}", "drafts")
    return int(count)


# A padded batch


def batch_preempted(victim: Request) -> Broken:
    """For a preemption in a padded batch."""
    return Broken(f"it preempts {victim!r}, but a padded batch runs to its end", "padded-preempt", (victim,))


def check_batch(tokens: Mapping[Request, Any], running: Collection[Request], waiting: Collection[Request]) -> int:
    """Tokens of each prompt in the first step of a batch, 1 in a later one. running, waiting: who does."""
    longest = 0
    for request, chunk in tokens.items():
        if type(request) is not Request or (not running and request not in waiting):
            raise unknown(request)
        if type(chunk) is not int or chunk < 1:
            chunk_of(request, chunk, settings.MAX_TOKENS)
        longest = max(longest, request.life.prompt_tokens)
    if not running:
        for request, chunk in tokens.items():
            if chunk != longest:
                sentence = f"it gives {chunk} tokens to {request!r}, but prompts are padded to {longest}"
                raise Broken(sentence, "padded-chunk", (request,))
        return longest
    for request, chunk in tokens.items():
        if request not in running:
            sentence = f"it admits {request!r}, but no request can join a running padded batch"
            raise Broken(sentence, "padded-join", (request,))
        if chunk != 1:
            sentence = "it must give exactly 1 token to a decode of a padded batch"
            raise Broken(sentence, "padded-chunk", (request,))
    if len(tokens) != len(running):
        sentence = f"it runs {len(tokens)} of {len(running)} requests, but a padded batch runs as one"
        raise Broken(sentence, "padded-all", tokens)
    return 1


def check_reserve(pool: BlockPool, width: int, prompt: int, output: int) -> None:
    """Raises ValueError if a batch of so many requests, prompt and output tokens needs more blocks than are free."""
    blocks, free = width * pool.blocks_for(prompt + output - 1), pool.free
    if blocks > free:
        raise ValueError(
            f"a batch of {width} requests padded to {prompt} prompt and {output} output tokens reserves {blocks} KV "
            f"blocks, and num_blocks is {pool.num_blocks}: lower max_num_seqs to at most "
            f"{max(1, int(free * width // blocks))}, or give the cache more blocks"
        )


# For the plain loop, which looks at an answer as a whole before it changes anything


def planned(schedule: Schedule, engine: Any) -> tuple[dict[Request, int], dict[Request, int]]:
    """Request -> tokens that it computes, in the order in which they take their blocks: decodes first; and its drafts.

    engine: the plain one. The answer is played through on a plan, a scratch copy of the pool. Raises Broken.
    """
    plan, victims, running, limits = engine.pool.plan(), schedule.preempt, engine.running, engine.limits
    for place, victim in enumerate(victims):
        if victim not in running or victim in victims[:place]:
            raise not_running(victim)
        if limits.padded:
            raise batch_preempted(victim)
        plan.release(victim)
    if engine.fruitless + len(victims) > PATIENCE:
        raise fruitless(PATIENCE, victims)
    decodes, short = [request for request in engine.decoding if request not in victims], None
    tokens = {request: 1 for request in decodes if schedule.decodes or request in schedule.tokens}
    drafts = drafts_of(schedule, tokens, engine) if schedule.drafts else {}
    if limits.padded:
        return _padded(schedule.tokens or tokens, engine), drafts
    for request in tokens:  # decodes take their blocks first
        short = short or _taken(plan, engine, request, 1)
    joining = []
    for request, count in schedule.tokens.items():
        if request not in running and request not in engine.waiting:
            raise unknown(request)
        joins = request not in running or request in victims
        remaining = 1 if request in decodes else request.known - plan.hit(request)
        count = chunk_of(request, count, remaining, joins)
        short = short or (_taken(plan, engine, request, count) if request not in tokens else None)
        tokens[request] = count
        joining += [request] if joins else []
    if drafts and not short:  # and their drafts last
        plan.lend(blocks_of(drafts, engine.pool.block_size))
        short = no_blocks(engine.pool, -plan.free, drafts) if plan.free < 0 else None
    total = sum(tokens.values()) + sum(drafts.values())
    free_slots = limits.max_num_seqs - len(running) + len(victims) - len(joining)
    if total > limits.max_num_batched_tokens or free_slots < 0:
        raise too_much(limits, free_slots, total, engine.pool, tokens)
    if short:
        raise short
    if victims and not tokens:
        raise preempts_only(engine.pool, victims)
    return tokens, drafts


def _taken(plan: Plan, engine: Any, request: Request, tokens: int) -> Broken | None:
    """The request takes blocks for so many tokens in the plan; what to raise if there are none."""
    if plan.take(request, tokens, if_fit=tokens):
        return None
    return no_blocks(engine.pool, plan.need(request, tokens) - plan.free, (request,))


def _padded(tokens: Mapping[Request, int], engine: Any) -> dict[Request, int]:
    """`planned` for a padded batch."""
    if tokens and not engine.running and engine.limits.max_num_seqs < len(tokens):
        raise too_much(engine.limits, engine.limits.max_num_seqs - len(tokens), 0, engine.pool, tokens)
    width = check_batch(tokens, engine.running, engine.waiting) if tokens else 0
    if tokens and engine.simulated:
        if not engine.running:
            check_reserve(engine.pool, len(tokens), width, engine.simulated.longest(tokens))
        return dict(tokens)
    pool = engine.pool
    missing = (
        sum(pool.blocks_for(each.computed + count) - pool.held(each) for each, count in tokens.items()) - pool.free
    )
    if missing > 0:
        raise no_blocks(pool, missing, tokens)
    return dict(tokens)


def check_blocks(pool: BlockPool, request: Request, tokens: int) -> None:
    """Raises ValueError if so many tokens that left for a request at once take more blocks than there are."""
    if pool.free < 0:
        raise ValueError(f"{tokens} tokens of {request!r} need more KV blocks than are free: emit fewer")
