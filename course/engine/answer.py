"""A policy's answer, looked at before it is executed. Every rule that it breaks has its sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from course.base import settings
from course.memory.block_pool import BlockPool, blocks_for
from course.policies.base import NOTHING, Request, Schedule

if TYPE_CHECKING:
    from course.engine.lives import Lives
    from course.engine.loop import Engine


class Broken(ValueError):
    """An answer that cannot be executed."""


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
        raise Broken(f"tokens must be a dict of requests to token counts, not {settings.quote(tokens)}")
    if type(preempt) is not tuple and not isinstance(preempt, Sequence):
        raise Broken(f"preempt must be a list of requests, not {settings.quote(preempt)}")
    if type(decodes) is not bool:
        raise Broken(f"decodes must be True or False, not {settings.quote(decodes)}")
    if until is not None and type(until) is not float and (isinstance(until, bool) or not isinstance(until, Real)):
        raise Broken(f"until must be a time in seconds or None, not {settings.quote(until)}")
    if until is not None and until != until and (tokens or decodes):
        raise Broken("until must be a time in seconds or None, not nan")
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
    return Broken(f"it runs {settings.quote(request)}, which is neither running nor waiting")


def not_running(victim: object) -> Broken:
    """For a preemption of somebody without a slot."""
    return Broken(f"it preempts {settings.quote(victim)}, which is not running")


def preempts_only(engine: Engine, victims: Sequence[Request]) -> ValueError:
    """Somebody was sent away and nobody runs: the policy's fault, unless it had no choice."""
    pool = engine.pool
    for victim in victims:
        if blocks_for(victim.known, pool.block_size) > pool.num_blocks:
            return ValueError(
                f"{victim!r} has outgrown the cache of {pool.num_blocks} KV blocks: raise num_blocks, or end its "
                "answer earlier"
            )
    return Broken("it preempts but runs nothing: give tokens to at least one request")


def chunk_of(request: Request, chunk: Any, remaining: int) -> int:
    """The tokens that the answer gives to a request, of which `remaining` can be computed."""
    try:
        chunk = settings.whole(f"the tokens of {settings.quote(request)}", chunk)
    except ValueError as error:
        raise Broken(str(error)) from None
    if chunk > remaining:
        raise Broken(f"it gives {chunk} tokens to {request!r}, which has {remaining} left to compute")
    return chunk


def too_much(engine: Lives, tokens: int) -> Broken:
    """What a step takes too much of, once everybody who joins has joined and has its blocks."""
    limits, slots = engine.limits, engine.limits.max_num_seqs
    if tokens > limits.max_num_batched_tokens:
        return Broken(f"it runs {tokens} tokens, and max_num_batched_tokens is {limits.max_num_batched_tokens}")
    if engine.free_slots < 0:
        return Broken(f"it needs {slots - engine.free_slots} slots, and max_num_seqs is {slots}")
    return no_blocks(engine.pool, -engine.pool.free)


def no_blocks(pool: BlockPool, missing: float) -> Broken:
    """For a step that takes more blocks than are free."""
    return Broken(
        f"it takes {missing} KV blocks more than the cache of {pool.num_blocks} has: preempt a request, or admit fewer"
    )
