"""A policy's answer, looked at before it is executed. Every rule that it breaks has its sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from course.base import settings
from course.memory.block_pool import BlockPool
from course.policies.base import NOTHING, Request, Schedule

if TYPE_CHECKING:
    from course.engine.loop import Engine


class Broken(ValueError):
    """An answer that cannot be executed."""


def check(answer: Any, policy: object) -> None:
    """Raises ValueError for anything but a Schedule, and Broken where one of its parts is of the wrong kind."""
    if type(answer) is not Schedule and not isinstance(answer, Schedule):
        raise ValueError(
            f"{type(policy).__name__}.schedule must return a Schedule, not {settings.quote(answer)}; "
            "an idle step is Schedule()"
        )
    tokens, until = answer.tokens, answer.until
    if type(tokens) is not dict and tokens is not NOTHING and not isinstance(tokens, Mapping):
        raise Broken(f"tokens must be a dict of requests to token counts, not {settings.quote(tokens)}")
    if type(answer.preempt) is not tuple and not isinstance(answer.preempt, Sequence):
        raise Broken(f"preempt must be a list of requests, not {settings.quote(answer.preempt)}")
    if type(answer.decodes) is not bool:
        raise Broken(f"decodes must be True or False, not {settings.quote(answer.decodes)}")
    if until is not None and type(until) is not float and (isinstance(until, bool) or not isinstance(until, Real)):
        raise Broken(f"until must be a time in seconds or None, not {settings.quote(until)}")
    if until is not None and until != until and (tokens or answer.decodes):
        raise Broken("until must be a time in seconds or None, not nan")


def unknown(request: object) -> Broken:
    """For a request that is none of this engine's, or has its answer already."""
    return Broken(f"it runs {settings.quote(request)}, which neither runs nor waits")


def not_running(victim: object) -> Broken:
    """For a preemption of somebody without a slot."""
    return Broken(f"it preempts {settings.quote(victim)}, which does not run")


def chunk_of(request: Request, chunk: Any, remaining: int) -> int:
    """The tokens that the answer gives to a request, of which `remaining` can be computed."""
    try:
        chunk = settings.whole(f"the tokens of {settings.quote(request)}", chunk)
    except ValueError as error:
        raise Broken(str(error)) from None
    if chunk > remaining:
        raise Broken(f"it gives {chunk} tokens to {request!r}, which has {remaining} left to compute")
    return chunk


def too_much(engine: Engine, tokens: int) -> Broken:
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
        f"it takes {missing} KV blocks more than the cache of {pool.num_blocks} has: preempt somebody, or admit fewer"
    )
