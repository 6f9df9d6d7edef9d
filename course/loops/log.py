"""What a loop writes down while it serves: enough to derive every time, and no more."""

from dataclasses import dataclass

import numpy as np

# One row a stretch: consecutive steps, one right after the other, that differ only in that the decode context grows by
# `decodes` a step (and in KV blocks, which follow from the token runs).
STRETCH = np.dtype(
    [
        ("first_step", np.int64),
        ("start", np.float64),  # s, of its first step; the others start when the step before them ends
        ("decodes", np.int64),
        ("decode_context", np.int64),  # tokens, of its first step
        ("prefill_tokens", np.int64),
        ("running", np.int64),  # sequences that hold a slot
        ("blocks", np.int64),  # KV blocks held during its first step; 0 without a cache
        ("preemptions", np.int64),
        ("dropped", np.int64),  # tokens that the preempted had computed, to be computed again
    ]
)


@dataclass(frozen=True)
class Log:
    """The raw record of a run. n requests, m steps.

    arrival, admitted: (n,) seconds. clock: (m,) seconds, when each step ended.
    stretches: STRETCH rows in order of time.
    runs: (k, 3) of (request, first step, last step): the request emitted one token in each of these steps.
    preempted: (n,) times each request was preempted.
    """

    arrival: np.ndarray
    admitted: np.ndarray
    clock: np.ndarray
    stretches: np.ndarray
    runs: np.ndarray
    preempted: np.ndarray


def log_from(arrival, admitted, clock, stretches, runs, preempted) -> Log:
    """A Log from the lists a loop filled. Raises ValueError where the clock left the range of floats."""
    clock = np.frombuffer(clock, dtype=np.float64) if len(clock) else np.empty(0)
    if not np.isfinite(clock[-1:]).all():
        raise ValueError("the clock ran out of range: the step times are too large to add up; lower their constants")
    runs = np.asarray(runs, dtype=np.int64).reshape(-1, 3)
    return Log(
        arrival=np.asarray(arrival, dtype=np.float64),
        admitted=np.asarray(admitted, dtype=np.float64),
        clock=clock,
        stretches=np.array(stretches, dtype=STRETCH),
        runs=runs[np.lexsort((runs[:, 1], runs[:, 0]))],
        preempted=np.asarray(preempted, dtype=np.int64),
    )
