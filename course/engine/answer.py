"""A policy's answer, looked at before it is executed. Every rule that it breaks has its sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from course.base import settings
from course.memory.block_pool import BlockPool
from course.policies.base import NOTHING, Limits, Request, Schedule


class Broken(ValueError):
    """An answer that cannot be executed.

    rule: a short name of the rule that it breaks, which stays the same when the sentence is rewritten: "kind",
    "unknown", "chunk", "budget", "slots", "blocks", "preempt", "idle", "fruitless", "padded-join", "padded-chunk",
    "padded-all", "padded-preempt". requests: those that it is about.
    """

    def __init__(self, sentence: str, rule: str, requests: Iterable[Request] = ()):
        super().__init__(sentence)
        self.rule, self.requests = rule, tuple(requests)


def broken(policy: object, step: int, now: float, error: Broken) -> Broken:
    """The same with the policy and the moment in front, as `serve` raises it."""
    sentence = f"{type(policy).__name__}.schedule broke the rules in step {step} (at {now:.6g} s): {error}"
    return Broken(sentence, error.rule, error.requests)


def checked(answer: Any, policy: object) -> Schedule:
    """The answer with a plain dict and a plain time. Another kind of dict, of number or of Schedule is read once.

    Raises ValueError for anything but a Schedule, and Broken where one of its parts is of the wrong kind.
    """
    if (
        type(answer) is Schedule and type(answer.tokens) is dict and type(answer.preempt) is tuple
        and answer.decodes is True and (answer.until is None or answer.until is math.inf)
    ):  # fmt: skip
        return answer  # what most answers look like, sooner
    if not isinstance(answer, Schedule):
        raise ValueError(
            f"{type(policy).__name__}.schedule must return a Schedule, not {settings.quote(answer)}; "
            "an idle step is Schedule()"
        )
    tokens, preempt, decodes, until = answer.tokens, answer.preempt, answer.decodes, answer.until
    if type(tokens) is not dict and tokens is not NOTHING and not isinstance(tokens, Mapping):
        raise Broken(f"tokens must be a dict of requests to token counts, not {settings.quote(tokens)}", "kind")
    if type(preempt) is not tuple and not isinstance(preempt, Sequence):
        raise Broken(f"preempt must be a list of requests, not {settings.quote(preempt)}", "kind")
    if type(decodes) is not bool:
        raise Broken(f"decodes must be True or False, not {settings.quote(decodes)}", "kind")
    if until is not None and type(until) is not float and (isinstance(until, bool) or not isinstance(until, Real)):
        raise Broken(f"until must be a time in seconds or None, not {settings.quote(until)}", "kind")
    if until is not None and until != until and (tokens or decodes):
        raise Broken("until must be a time in seconds or None, not nan", "kind")
    plain = type(answer) is Schedule and (type(tokens) is dict or tokens is NOTHING)
    if plain and (until is None or type(until) is float):
        return answer
    return Schedule(tokens if tokens is NOTHING else dict(tokens), preempt, decodes, _seconds(until))


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


def stuck(running: Sequence[Request], waiting: Sequence[Request]) -> Broken:
    """For an answer that runs nothing where nothing will change by waiting."""
    return Broken(
        f"it runs nothing although {len(running)} requests are running and {len(waiting)} "
        f"wait, and nothing will change by waiting: give tokens to at least one request",
        "idle",
        (*running, *waiting),
    )


def chunk_of(request: Request, chunk: Any, remaining: int) -> int:
    """The tokens that the answer gives to a request, of which `remaining` can be computed."""
    try:
        chunk = settings.whole(f"the tokens of {settings.quote(request)}", chunk)
    except ValueError as error:
        raise Broken(str(error), "chunk", (request,)) from None
    if chunk > remaining:
        raise Broken(
            f"it gives {chunk} tokens to {request!r}, which has {remaining} left to compute", "chunk", (request,)
        )
    return chunk


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
