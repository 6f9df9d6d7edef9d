"""Giving a request up while an engine rests between two steps."""

from __future__ import annotations

from course.base import settings
from course.engine.serving import Engine
from course.policies.base import Request


def cancel(engine: Engine, request: Request) -> None:
    """Whoever asked has gone: the request gives its slot and its blocks back and gets no more tokens.

    What it emitted stays in the log. Where the request waits, it leaves the queue. In a padded batch its slot goes on
    as padding until the batch ends, as after an answer that is complete, and the executor must know. For an engine
    whose executor knows no lengths.

    Raises ValueError while the engine serves, for a simulated engine, and for a request that it does not have (any
    more).
    """
    engine.must_rest()
    if engine.simulated:
        raise ValueError("a simulated engine knows how long each answer will be and serves it to its end")
    if type(request) is not Request or request.life.engine is not engine:
        raise ValueError(f"{settings.quote(request)} is not with this engine, or has its answer already")
    arrivals, life = engine.arrivals, request.life
    if request in engine.queue:
        del engine.queue[request]
    elif request in engine.sent_back:
        engine.sent_back.remove(request)
    elif request not in engine.members:
        place = arrivals.ids.index(life.row, arrivals.head)
        del arrivals.ids[place], arrivals.times[place]
    elif engine.batch is not None:
        if engine.batch.is_open(request):
            engine.notes.cancelled.add(life.row)
            engine.batch.ended(request)
            engine.batch.after_step()
        return
    else:
        if life.decodes_from >= 0:
            engine.pause(request)
        engine.notes.stays.extend((life.row, life.admitted, engine.steps - 1))
        engine.pool.release(request)
        del engine.members[request]
        engine.prefilling.pop(request, None)
        engine.running_shown = None
    engine.notes.cancelled.add(life.row)
    life.computed_before, life.engine = 0, None
    engine.answered += 1
    if arrivals.follow_answers:
        arrivals.answered(life.row, engine.now)
