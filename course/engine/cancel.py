"""Giving a request up while an engine rests between two steps."""

from __future__ import annotations

from course.base import settings
from course.engine.log import CANCELLED, Left
from course.engine.plain import PlainEngine
from course.engine.serving import Engine
from course.policies.base import Request


def cancel(engine: Engine | PlainEngine, request: Request) -> None:
    """Whoever asked has gone: the request gives its slot and its blocks back and gets no more tokens.

    What it emitted stays in the log. Where the request waits, it leaves the queue. In a padded batch its slot goes on
    as padding until the batch ends, as after an answer that is complete, and the executor must know.

    Raises ValueError while the engine serves, for a request that it does not have (any more), and for one in a padded
    batch whose engine knows beforehand when it ends.
    """
    engine.must_rest()
    if type(request) is not Request or request.life.engine is not engine:
        raise ValueError(f"{settings.quote(request)} is not with this engine, or has its answer already")
    if isinstance(engine, PlainEngine) and request in engine.leaving:
        raise ValueError(f"{request!r} has its answer already, and leaves after the next step")
    if not (engine.limits.padded and request in engine.running):
        engine.drop(request, CANCELLED)
    elif engine.simulated or isinstance(engine, PlainEngine):
        raise ValueError(f"{request!r} is in a padded batch, which is served to an end that is known: cancel it before")
    elif engine.batch is not None and engine.batch.is_open(request):
        engine.notes.left[request.index] = Left(CANCELLED, engine.now, engine.steps, 0)
        engine.batch.ended(request)
        engine.batch.after_step()
