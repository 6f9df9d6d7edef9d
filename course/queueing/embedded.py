"""Queues whose servers only move together: exact means from a chain that looks at the queue between two steps.

Arrivals are Poisson and join the queue at once; requests leave only at the end of a step. So the number in the
system at the start of a step is a Markov chain, and inside a step it only grows, at the arrival rate. An idle engine
starts a step as soon as a request arrives (no admission window).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log, log1p

import numpy as np

from course.queueing import _checks as check
from course.queueing._numeric import binomial_pmf, crossing, poisson_pmf
from course.queueing.single import QueueMeans, _means

_MOST_STATES = 3_000  # one dense solve of this size takes about a second


def stepped_servers(*, arrival_rate: float, step_s: float, mean_tokens: float, max_num_seqs: int) -> QueueMeans:
    """Continuous batching with a constant step and geometric lengths: M/M/c in which no request starts mid-step. Exact.

    arrival_rate: requests/s. step_s: seconds a step, whatever the batch. mean_tokens: mean steps a request needs.
    max_num_seqs: slots. `p_wait` is the share of requests that wait at all, be it only for the step to end: it nears 1
    when steps are long against the gaps between arrivals, where Erlang's C may be far below.
    Source: the embedded chain of Bailey (1954), J. R. Stat. Soc. B 16, with binomial departures.
    Does not apply: when the step time depends on the batch, or lengths are not geometric.
    Raises ValueError for a setting out of range, when the queue would grow without end, and when the load is so near 1
    that the chain needs more than 3,000 states.
    """
    rate = check.rate("arrival_rate", arrival_rate)
    step = check.seconds("step_s", step_s)
    tokens = check.length("mean_tokens", mean_tokens)
    slots = check.slots("max_num_seqs", max_num_seqs)
    rho = check.stable(
        rate, slots / (tokens * step), "Lower arrival_rate, shorten the step or the answers, or add slots."
    )
    leave = 1 / tokens
    states = _states(rate * step, slots, lambda z: slots * (log1p(-leave + leave / z) if leave < 1 else -log(z)))

    def departures(number: int) -> np.ndarray:
        return binomial_pmf(np.arange(min(number, slots) + 1), min(number, slots), leave)

    chain = _Chain.solve(rate, np.full(states, step), departures)
    return QueueMeans(
        **_means(rate, chain.busy, chain.mean_in_system / rate - tokens * step, tokens * step, rho),
    )


@dataclass(frozen=True)
class BulkMeans(QueueMeans):
    """Means of a bulk-service queue; `mean_batch_requests` is over batches, `busy` the share of time serving."""

    busy: float
    mean_batch_requests: float


def bulk_service(*, arrival_rate: float, batch_s: Sequence[float]) -> BulkMeans:
    """M/D^[1,b]/1: all who wait when the server falls free, up to b, are served and leave together. Exact.

    arrival_rate: requests/s. batch_s: seconds to serve a batch of 1, 2, ... b. This is `policies.Dynamic` with
    max_queue_delay=0 and answers of equal length. Utilisation is arrival_rate over the rate of full batches: a server
    that is busy all the time at half of it still has room, since its batches grow.
    Source: Bailey (1954), J. R. Stat. Soc. B 16; Neuts (1967), Ann. Math. Stat. 38.
    Does not apply: to an admission window above 0, to answers of different lengths (a batch then lasts as long as its
    longest), or to continuous batching.
    Raises ValueError for a time that is not positive, when the queue would grow without end, and when the load is so
    near 1 that the chain needs more than 3,000 states.
    """
    rate = check.rate("arrival_rate", arrival_rate)
    seconds = np.array(check.by_size("batch_s", batch_s, "seconds of a batch"))
    most = len(seconds)
    rho = check.stable(
        rate, most / float(seconds[-1]), "Lower arrival_rate, serve larger batches, or make them faster."
    )
    states = _states(rate * seconds[-1], most, lambda z: -most * log(z), rate * seconds.max())
    durations = seconds[np.minimum(np.arange(states), most - 1)]
    chain = _Chain.solve(rate, durations, lambda number: np.eye(1, min(number, most) + 1, min(number, most))[0])
    batches = np.minimum(np.arange(1, states + 1), most)
    # A request is more often in a large batch than a batch is large: weigh by the requests in it.
    service = float(chain.at_start @ (batches * durations) / (chain.at_start @ batches))
    means = _means(rate, chain.busy, chain.mean_in_system / rate - service, service, rho)
    return BulkMeans(**means, busy=chain.busy, mean_batch_requests=float(chain.at_start @ batches))


@dataclass(frozen=True)
class _Chain:
    """at_start[i]: share of steps that start with i + 1 in the system."""

    at_start: np.ndarray
    busy: float
    mean_in_system: float

    @classmethod
    def solve(cls, rate: float, durations: np.ndarray, departures: Callable[[int], np.ndarray]) -> "_Chain":
        """durations[i]: seconds of a step that starts with i + 1; departures(n): P(0, 1, ... leave) from n."""
        states = len(durations)
        moves = np.zeros((states, states + 1))  # column j: j are left after the step
        for index, seconds in enumerate(durations):
            number = index + 1
            leave = departures(number)
            arrive = poisson_pmf(np.arange(states + 1), rate * seconds)
            after = np.convolve(leave[::-1], arrive)[: states + 1 - (number - len(leave) + 1)]
            moves[index, number - len(leave) + 1 :] = after
            moves[index, states] += max(0.0, 1 - after.sum())  # the cut tail stays at the edge
        moves[:, 1] += moves[:, 0]  # left empty, the engine idles until one arrives, and starts with one
        system = moves[:, 1:].T - np.eye(states)
        system[0] = 1.0
        at_start = np.linalg.solve(system, np.eye(1, states)[0])
        working = float(at_start @ durations)
        idle = float(at_start @ moves[:, 0]) / rate
        present = float(at_start @ (np.arange(1, states + 1) * durations + rate * durations**2 / 2))
        return cls(at_start, working / (working + idle), present / (working + idle))


def _states(arrivals: float, most: int, log_departures: Callable[[float], float], peak: float = 0.0) -> int:
    """States to keep so that less than 1e-12 is cut.

    Far out the chain is a random walk whose tail falls like z^-n, where z > 1 solves
    E[z^arrivals] E[z^-departures] = 1.
    """

    def drift(z: float) -> float:
        return arrivals * (z - 1) + log_departures(z)

    high = 2.0
    while drift(high) < 0:
        high *= 2
    low = 1 + 1e-6
    if drift(low) > 0:
        raise ValueError("utilisation is within 0.0001 of 1, too close for this formula: lower arrival_rate")
    decay = log(crossing(drift, low, high))
    reach = max(peak, arrivals)
    states = most + ceil(28 / decay) + ceil(reach + 8 * reach**0.5) + 1
    if states > _MOST_STATES:
        raise ValueError(
            f"utilisation is so close to 1 that the queue has {states} likely lengths, and this formula stops at "
            f"{_MOST_STATES}: lower arrival_rate a little"
        )
    return states
