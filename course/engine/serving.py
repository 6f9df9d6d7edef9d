"""`serve`: a workload, a policy, a step time and perhaps a KV cache make a Run."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace

import numpy as np

from course.base import settings
from course.engine.fast.loop import Engine
from course.engine.log import Log
from course.engine.plain import PlainEngine
from course.engine.run import Run
from course.engine.speculative import Speculative
from course.engine.step import StepTime
from course.memory.kvcache import KVCache
from course.policies.base import Policy, fresh
from course.workload import Workload

LOOP: ContextVar[Callable[[Engine], Log | None] | None] = ContextVar("LOOP", default=None)
"""What `serve` asks to run an engine that has its requests, before the engine itself: None for an answer leaves it to
the engine. `course.sweep.compiled` sets it."""


def serve(
    load: Workload,
    policy: Policy,
    step_time: StepTime | Speculative,
    cache: KVCache | None = None,
    *,
    honour_until: bool = True,
    async_scheduling: bool = False,
) -> Run:
    """Serve every request of `load` on one simulated engine, and return what happened.

    policy: decides which tokens run in the next step (one of `course.policies`, or your own). A copy of it is served
        (`Policy.fresh`), so that what it remembers of this run does not change the next one; `run.policy` is that copy.
    step_time: seconds of a step (`steptime.Roofline`, `.PowerLaw`, or any callable from a Step to seconds); or a
        `Speculative`, which verifies the drafts of a policy such as `policies.Drafting`: a fresh one is served, and
        `run.step_time` is that one.
    cache: KV blocks; without one, memory is unlimited. Each call opens a fresh pool of them.
    honour_until: False asks the policy before every step, whatever it says: the same Run, slower.
    async_scheduling: True plans each step before the tokens of the one before are back, as vLLM does by default: a
        request whose answer is complete holds slot and blocks until the next step has run. (An engine plans as soon as
        the step before has begun, so that one that comes during that step waits for one more; here it is in the plan of
        the next.) Served by the plain loop, which takes longer. `steptime.with_host` is the other half: the seconds.

    One step is one forward pass. A request's first token leaves at the end of the step that completes its prompt; every
    later decode step computes one token and emits the next. The clock moves by adding one step after the other.

    Raises ValueError for a request that can never be served, a policy that breaks slots, budget or blocks, one that
    pads its batches if async_scheduling is asked for, and a step time that is not a finite number above zero. A load
    above capacity is served to its end; `run.warnings` says so.
    """
    _check_kinds(load, policy, step_time, cache)
    if isinstance(step_time, Speculative):
        step_time = step_time.fresh()
    settings.flag("honour_until", honour_until)
    if settings.flag("async_scheduling", async_scheduling):
        engine: Engine | PlainEngine = PlainEngine(fresh(policy), step_time, cache, async_scheduling=True)
    else:
        engine = Engine(fresh(policy), step_time, cache, honour_until=honour_until)
    engine.follow(load)
    log = None
    if isinstance(engine, Engine) and honour_until and (instead := LOOP.get()):
        log = instead(engine)
    return Run(load, engine.policy, engine.limits, step_time, cache, log or engine.run())


def finish(engine: Engine) -> Run:
    """Serve all that an engine still has to do, and return what happened since its beginning.

    The workload of the Run is what came, with answers as long as they became. Raises ValueError if requests were
    submitted in another order than that of their arrival, and as `serve` does.
    """
    log, load, prompts = engine.run(), engine.arrivals.load, np.array(engine.arrivals.prompt)
    lengths = log.lengths - prompts
    if log.left:  # what is not over has the length that it would have had, if that is known
        known = engine.simulated.lengths if engine.simulated else np.maximum(lengths, 1)
        gone = list(log.left)
        lengths[gone] = np.array(known)[gone]
    if load is None or len(load) < len(prompts):
        load = Workload(log.arrival, prompts, lengths, **engine.arrivals.columns())
    elif not np.array_equal(lengths, load.output_tokens):
        load = replace(load, output_tokens=lengths)
    return Run(load, engine.policy, engine.limits, engine.executor, engine.cache, log)


def _check_kinds(load: Workload, policy: Policy, step_time: StepTime | Speculative, cache: KVCache | None) -> None:
    """Raises ValueError for an argument that is something else than it should be."""
    if not isinstance(load, Workload):
        raise ValueError(f"the first argument must be a Workload, not {settings.quote(load)}")
    for place, value, what in (
        ("second", policy, "policy, such as policies.Static(max_num_seqs=8)"),
        ("third", step_time, 'step time, such as steptime.Roofline("llama-3.1-8b", "H100")'),
    ):
        if isinstance(value, type):
            raise ValueError(f"the {place} argument must be a {what}, not the class {value.__name__} itself")
    if not callable(getattr(policy, "schedule", None)):
        raise ValueError(f"the second argument must be a policy with a schedule method, not {settings.quote(policy)}")
    if not callable(step_time) and not isinstance(step_time, Speculative):
        raise ValueError(
            "the third argument must be a step time, a callable from a Step to seconds, not "
            f"{settings.quote(step_time)}"
        )
    if cache is not None and not isinstance(cache, KVCache):
        raise ValueError(f"the cache must be a KVCache or None, not {settings.quote(cache)}")
