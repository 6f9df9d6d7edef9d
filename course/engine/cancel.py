"""Giving a request up while an engine rests between two steps."""

from __future__ import annotations

from course.base import settings
from course.engine.loop import Engine
from course.policies.base import Request


def cancel(engine: Engine, request: Request) -> None:
    """Whoever asked has gone: the request gives its slot and its blocks back and gets no more tokens.

    What it emitted stays in the log. Where the request waits, it leaves the queue. In a padded batch its slot goes on
    as padding until the batch ends, as after an answer that is complete, and the executor must know. For an engine
    whose executor knows no lengths.

    Raises ValueError while the engine serves, for a simulated engine, and for a request that it does not have (any
    more).
    """
    engine._must_rest()
    if engine.simulated:
        raise ValueError("a simulated engine knows how long each answer will be and serves it to its end")
    if type(request) is not Request or request._engine is not engine:
        raise ValueError(f"{settings.quote(request)} is not with this engine, or has its answer already")
    arrivals = engine.arrivals
    if request in engine._queue:
        del engine._queue[request]
        engine.waiting_shown = None
    elif request in engine._sent_back:
        engine._sent_back.remove(request)
        engine.waiting_shown = None
    elif request not in engine._running:
        place = arrivals.ids.index(request._index, arrivals.head)
        del arrivals.ids[place], arrivals.times[place]
    elif engine.batch is not None:
        if engine.batch.is_open(request):
            engine.batch.ended(request)
            engine.batch.after_step()
        return
    else:
        if request._since >= 0:
            engine._pause(request)
        engine.notes.stays.extend((request._index, request._admitted, engine.step - 1))
        engine.pool.release(request)
        del engine._running[request]
        engine.prefilling.pop(request, None)
        engine.running_shown = None
    request._c = 0
    request._engine = None
    engine.answered += 1
    if arrivals.next_turns:
        arrivals.answered(request._index, engine.now)
