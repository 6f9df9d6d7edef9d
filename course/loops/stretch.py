"""A stretch of steps in which nobody joins or leaves: decodes alone, their times added up as one array."""

import numpy as np

from ..steptime import StepTimeModel
from .arrivals import NEVER

VECTOR = 24  # steps from which NumPy adds up a stretch faster than a plain loop
_LONGEST = 1 << 16  # steps taken at once at most, so that a long answer does not ask for much memory at once
_add_up = np.add.accumulate


class Lines(dict):
    """decodes -> (base, slope), asked for once."""

    def __init__(self, step_time: StepTimeModel):
        self.decode_line = step_time.decode_line

    def __missing__(self, decodes: int) -> tuple[float, float]:
        line = self[decodes] = self.decode_line(decodes)
        return line


def stretch(now: float, stop: float, count: int, decodes: int, context: int, base: float, slope: float) -> bytes:
    """When up to `count` steps of decodes alone end, as float64; at least all those that begin before `stop`.

    now, stop: seconds. context: tokens that the decodes attend to in the first step. base, slope: see `decode_line`.
    """
    first = base + slope * context
    # Steps only get longer as the context grows: no more than this many begin before `stop`.
    begin = int((stop - now) / first) + 2 if stop < NEVER else count
    count = min(count, begin, _LONGEST)
    if slope:
        ends = np.arange(context, context + count * decodes, decodes, np.float64)
        ends *= slope
        ends += base
    else:
        ends = np.empty(count)
        ends.fill(base)
    ends[0] = now + first
    _add_up(ends, 0, None, ends)
    return ends.tobytes()
