"""What a loop writes down while it serves: who did what in which steps. Every time and every column follows from it."""

from dataclasses import dataclass

import numpy as np

from course.base.settings import MAX_CHUNKS, MAX_STEPS
from course.workload import Workload


@dataclass(frozen=True)
class Log:
    """The raw record of a run of n requests in m steps. Rows are int64; step ranges include both ends.

    arrival: (n,) seconds. lengths: (n,) prompt and output tokens. clock: (m,) seconds, when each step ended.
    idle: steps that began later than the step before them ended; step 0 always.
    idle_start: seconds, when those steps began.
    tokens: (request, first step, last step): it emitted one token in each of these steps. Sorted.
    decodes: (request, first step, last step, known): it computed one token in each, attending to `known` tokens in the
        first and to one more in each later step. In a padded batch, padding too.
    chunks: (request, step, tokens, cached): prompt tokens it computed, and what was in the cache before.
    stays: (request, first step, last step): it held a slot.
    preemptions: (request, step, tokens): it lost this many computed tokens before this step.
    """

    arrival: np.ndarray
    lengths: np.ndarray
    clock: np.ndarray
    idle: np.ndarray
    idle_start: np.ndarray
    tokens: np.ndarray
    decodes: np.ndarray
    chunks: np.ndarray
    stays: np.ndarray
    preemptions: np.ndarray

    def start_of(self, steps: np.ndarray) -> np.ndarray:
        """When these steps began, in seconds."""
        starts = self.clock[steps - 1]  # of step 0, which is always among the idle ones, overwritten below
        place = np.searchsorted(self.idle, steps)
        place[place == len(self.idle)] = 0
        late = self.idle[place] == steps
        starts[late] = self.idle_start[place[late]]
        return starts


def rows(values, width: int) -> np.ndarray:
    """A list of tuples as an int64 array of shape (len, width)."""
    return np.asarray(values, dtype=np.int64).reshape(-1, width)


def check_length(clock, chunks=()) -> None:
    """Raises ValueError where a run has become too long to keep in memory."""
    if len(chunks) > MAX_CHUNKS:
        raise ValueError(
            f"the prompts are computed in more than {MAX_CHUNKS:,} chunks, too many to keep: raise "
            "max_num_batched_tokens or long_prefill_token_threshold, or shorten the prompts"
        )
    if len(clock) > MAX_STEPS:
        raise ValueError(
            f"the run takes more than {MAX_STEPS:,} steps, too many to keep: serve fewer requests at a time (`head`), "
            "or shorter answers"
        )


def log_from(load: Workload, arrival, clock, idle, *, tokens, decodes, chunks, stays, preemptions) -> Log:
    """A Log from what a loop filled; idle as (step, seconds). Raises ValueError where the clock stood still."""
    clock = np.frombuffer(clock, dtype=np.float64)
    begun = dict(idle)  # where two are given for one step, the later one counts
    idle, idle_start = np.array(list(begun), dtype=np.int64), np.array(list(begun.values()))
    stuck = [*clock[:-1][~(clock[1:] > clock[:-1])], *idle_start[~(clock[idle] > idle_start)]]
    if stuck:
        when = stuck[0]
        raise ValueError(
            f"the clock stands still at {when:.6g} s: floats are {np.spacing(when):.1g} s apart there, more than a "
            "step takes; give larger step times, or arrivals nearer to 0"
        )
    if (np.diff(tokens[:, 0]) <= 0).any():
        tokens = tokens[np.lexsort((tokens[:, 1], tokens[:, 0]))]
    return Log(
        arrival=np.asarray(arrival, dtype=np.float64),
        lengths=load.prompt_tokens + load.output_tokens,
        clock=clock,
        idle=idle,
        idle_start=idle_start,
        tokens=tokens,
        decodes=decodes[decodes[:, 1] <= decodes[:, 2]],
        chunks=chunks,
        stays=stays,
        preemptions=preemptions,
    )
