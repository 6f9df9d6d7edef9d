"""A stretch of steps in which no request joins or leaves: decodes alone, their times added up one after the other."""

from array import array
from bisect import bisect_left
from struct import pack

import numpy as np

from course.base.settings import MAX_STEPS
from course.engine.arrivals import NEVER
from course.engine.executor import Simulated
from course.engine.log import check_length
from course.engine.step import Step, StepTime, check_seconds

LONG = 24  # steps from which NumPy adds up a stretch faster than a plain loop
_LONGEST = 1 << 16  # steps taken at once at most, so that a long answer does not ask for much memory at once
_add_up = np.add.accumulate


def keep(clock: array, ends: list[float]) -> None:
    """Move these times into the clock, where they take less memory."""
    if len(ends) < LONG:
        clock.fromlist(ends)
    else:
        clock.frombytes(pack(f"{len(ends)}d", *ends))  # twice as fast if there are many
    ends.clear()


def decode(
    simulated: Simulated, clock: array, now: float, stop: float, count: int, decodes: int, context: int
) -> float:
    """Add to the clock when up to `count` steps of decodes alone end; return when the last of them does.

    now, stop: seconds; no step begins at `stop` or later, and all that begin before do, up to a limit on memory.
    context: tokens that the decodes attend to in the first step.
    """
    if simulated.model is None:
        return stretch_of_calls(clock, now, stop, count, decodes, context, simulated.step_time)
    base, slope = simulated.lines[decodes]
    if count >= LONG and now + LONG * base < stop:
        return long_stretch(clock, now, stop, count, decodes, context, base, slope)
    for _ in range(count):
        now += base + slope * context
        clock.append(now)
        if now >= stop:
            break
        context += decodes
    return now


def long_stretch(
    clock: array, now: float, stop: float, count: int, decodes: int, context: int, base: float, slope: float
) -> float:
    """`decode` for LONG steps and more. base, slope: see `decode_line`."""
    start = len(clock)
    if start > MAX_STEPS:
        check_length(clock)
    first = base + slope * context
    if stop < NEVER:  # steps only get longer as the context grows: no more than this many begin before `stop`
        begin = int((stop - now) / first) + 2
        if begin < count:
            count = begin
    if count > _LONGEST:
        count = _LONGEST
    if slope:
        ends = np.arange(context, context + count * decodes, decodes, dtype=np.float64)
        ends *= slope
        ends += base
    else:
        ends = np.empty(count)
        ends.fill(base)
    ends[0] = now + first
    clock.frombytes(_add_up(ends).tobytes())
    if stop < NEVER:
        del clock[bisect_left(clock, stop, start) + 1 :]
    return clock[-1]


def stretch_of_calls(
    clock: array, now: float, stop: float, count: int, decodes: int, context: int, step_time: StepTime
) -> float:
    """`decode` for a step time that is any callable: it is asked for each step."""
    for _ in range(count):
        step = Step(decodes, context, ())
        now += check_seconds(step_time(step), step)
        clock.append(now)
        if now >= stop:
            break
        context += decodes
    return now
