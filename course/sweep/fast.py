"""The compiled loop of `Continuous` (`course.sweep.loop`) in place of the engine's, for the runs that it can do.

numba is an extra, `pip install -e ".[fast]"`, and imported when asked for. A run is the engine's own to the last bit,
or the engine serves it.
"""

from __future__ import annotations

import types
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from course.base.settings import MAX_CHUNKS, MAX_STEPS
from course.engine import serving
from course.engine.executor import Simulated
from course.engine.log import Log
from course.engine.serving import Engine
from course.engine.step import StepTimeModel
from course.memory.block_pool import BlockPool
from course.models.engine_defaults import release
from course.policies.continuous import Continuous
from course.sweep import loop
from course.sweep.executors import extra
from course.workload import Workload

ENGINE, COMPILED = "engine", "compiled"
UNLIMITED = 1 << 60
BEGIN = 1 << 12  # rows of the arrays that grow


@contextmanager
def compiled(on: bool = True) -> Iterator[Callable[[], str]]:
    """Within it `serve` runs in the compiled loop what that can do; else as ever.

    Yields a function that says which loop has served: "engine", "compiled", or "compiled, engine". Raises ImportError
    without numba. The first time on a machine takes up to a minute, for compiling.
    """
    served: set[str] = set()
    if not on:
        yield lambda: ENGINE
        return
    run = compiled_loop()

    def instead(engine: Engine) -> Log | None:
        log = log_of(engine, run)
        served.add(COMPILED if log else ENGINE)
        return log

    before = serving.LOOP.set(instead)
    try:
        yield lambda: ", ".join(sorted(served)) or ENGINE
    finally:
        serving.LOOP.reset(before)


@cache
def compiled_loop() -> Callable[..., int]:
    """`loop.loop`, compiled when it is first called, and kept beside its source for other processes."""
    numba = extra("numba", "fast")
    names = dict(vars(loop))
    for part in loop.PARTS:
        plain = types.FunctionType(part.__code__, names, part.__name__, part.__defaults__)
        plain.__module__ = loop.__name__
        try:
            names[part.__name__] = numba.njit(cache=True)(plain)
        except RuntimeError:  # no folder in which it could be kept
            names[part.__name__] = numba.njit(plain)
    return names["loop"]


def _parts(engine: Engine) -> tuple[Continuous, Simulated, StepTimeModel, Workload] | None:
    """Policy, executor, step time and requests, if the compiled loop means what this engine would do."""
    policy, simulated, load = engine.policy, engine.simulated, engine.arrivals.load
    own = {"schedule", "queue", "victim", "admit", "make_room", "room", "cap", "cap_among"}
    if type(policy) is not Continuous or vars(policy).keys() & own or type(engine.pool) is not BlockPool:
        return None
    if simulated is None or simulated.model is None or load is None or len(load) < len(engine.arrivals.arrival):
        return None
    if load.patience is not None or engine.arrivals.follow_answers:
        return None
    return policy, simulated, simulated.model, load


def log_of(engine: Engine, run: Callable[..., int]) -> Log | None:
    """What happens when this engine, which has its requests, serves them; None, and nothing changed, if `run` cannot.

    run: `loop.loop`, compiled or as it is.
    """
    parts = _parts(engine)
    if parts is None:
        return None
    (policy, simulated, model, load), pool = parts, engine.pool
    n = len(load)
    r, q, s = (
        np.zeros(shape, dtype=np.int64)
        for shape in ((n, len(loop.COLUMNS)), (len(loop.LISTS), n), len(loop.SETTINGS) + len(loop.STATE))
    )
    r[:, loop.PROMPT], r[:, loop.OUTPUT] = load.prompt_tokens, load.output_tokens
    limited = engine.cache is not None
    s[: len(loop.SETTINGS)] = (
        policy.max_num_seqs, policy.max_num_batched_tokens, policy.enable_chunked_prefill,
        policy.long_prefill_token_threshold, not release(policy.engine_version).threshold_alone,
        policy.scheduler_reserve_full_isl, int(policy.watermark * (pool.num_blocks + 1)) if limited else 0,
        pool.block_size, pool.num_blocks if limited else UNLIMITED,
    )  # fmt: skip
    s[loop.FREE] = s[loop.BLOCKS]
    f, lines = np.zeros(2), np.full((min(policy.max_num_seqs, n) + 1, 2), np.nan)
    prompts = np.array(simulated.prefill_line or (np.nan, np.nan))
    arrival, idle = np.ascontiguousarray(load.arrival, dtype=np.float64), np.empty((n + 1, 2))
    clock, events = np.empty(BEGIN), np.empty((BEGIN, 5), dtype=np.int64)
    while True:
        why = run(r, q, s, f, arrival, lines, prompts, clock, idle, events)
        if why == loop.SECONDS:
            f[1] = model.seconds(*s[loop.DECODING : loop.SEEN + 1].tolist())
        elif why == loop.LINE:
            decodes = int(s[loop.DECODING])
            lines[decodes] = simulated.lines[decodes]
        elif why == loop.FULL and s[loop.STEPS] <= MAX_STEPS and s[loop.EVENTS] <= MAX_CHUNKS:
            if s[loop.STEPS] == len(clock):
                clock = np.concatenate([clock, np.empty_like(clock)])
            else:
                events = np.concatenate([events, np.empty((len(events) + 4 * n, 5), dtype=np.int64)])
        elif why == loop.DONE:
            break
        else:  # stuck, or too long to keep: the engine says so in its words
            return None
    _write_down(engine, events[: s[loop.EVENTS]], clock[: s[loop.STEPS]], idle[: s[loop.IDLES]])
    return engine.log()


def _write_down(engine: Engine, events: np.ndarray, clock: np.ndarray, idle: np.ndarray) -> None:
    """What the loop noted, as the engine would have."""
    notes = engine.notes
    kind, rows = events[:, 0], events[:, 1:]
    tokens = rows[kind == loop.TOKENS]
    known, by_chunk = divmod(tokens[:, 3], 2)
    one = np.ones_like(known)
    decodes = np.stack([tokens[:, 0], tokens[:, 1] + by_chunk, tokens[:, 2], known], axis=1)
    for column, found in (
        (notes.tokens, np.column_stack([tokens[:, :3], one])),
        (notes.decodes, decodes[decodes[:, 1] <= decodes[:, 2]]),
        (notes.chunks, rows[kind == loop.CHUNK]),
        (notes.stays, rows[kind == loop.STAY][:, :3]),
        (notes.preemptions, rows[kind == loop.PREEMPTED][:, :3]),
    ):
        column.frombytes(np.ascontiguousarray(found, dtype=np.int64).tobytes())
    engine.clock = array("d", clock.tobytes())
    engine.idle.extend((int(step), begin) for step, begin in idle.tolist())
