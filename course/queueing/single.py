"""One server, Poisson arrivals, first come first served: M/M/1, M/D/1 and M/G/1.

In a serving engine this is one slot (`max_num_seqs=1`): a request holds the whole GPU until its last token. A batch is
not a single server. Use these formulas to learn what load and spread of lengths do to a wait, and
`course.queueing.processor_sharing` for an engine that batches.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, log

import numpy as np
from scipy.special import pdtrc

from course.base.settings import real
from course.queueing import _checks as check
from course.queueing._numeric import crossing, poisson_pmf

_MOST_SERVICES = 1 << 17  # in a wait whose probability is added up exactly: a second's work
_REMEDY = "Lower arrival_rate or shorten the service."


@dataclass(frozen=True)
class QueueMeans:
    """Long-run means of a stable queue, as an arriving request sees them (Poisson arrivals see time averages)."""

    utilisation: float
    p_wait: float
    mean_wait_s: float
    mean_time_in_system_s: float
    mean_waiting_requests: float
    mean_in_system_requests: float


def _means(arrival_rate: float, p_wait: float, wait_s: float, service_s: float, utilisation: float) -> dict[str, float]:
    """Little's law turns the two mean times into the two mean numbers."""
    return {
        "utilisation": utilisation,
        "p_wait": p_wait,
        "mean_wait_s": wait_s,
        "mean_time_in_system_s": wait_s + service_s,
        "mean_waiting_requests": arrival_rate * wait_s,
        "mean_in_system_requests": arrival_rate * (wait_s + service_s),
    }


@dataclass(frozen=True)
class MM1(QueueMeans):
    """Means of an M/M/1 queue and its percentiles, which are closed forms."""

    arrival_rate: float
    service_s: float

    def wait_percentile_s(self, quantile: float) -> float:
        """Seconds that a share `quantile` of requests wait at most: P(wait > t) = rho e^(-(mu - lambda) t)."""
        tail = 1 - check.share("quantile", quantile)
        return max(0.0, log(self.utilisation / tail) / (1 / self.service_s - self.arrival_rate))

    def time_in_system_percentile_s(self, quantile: float) -> float:
        """Wait plus service is exponential with mean 1 / (mu - lambda): its p99 is ln 100 = 4.6 means at every load."""
        return -log(1 - check.share("quantile", quantile)) * self.mean_time_in_system_s


def mm1(*, arrival_rate: float, service_s: float) -> MM1:
    """M/M/1: exponential service times. Mean wait = rho S / (1 - rho).

    arrival_rate: requests/s. service_s: mean service time S, seconds.
    Source: Kleinrock, Queueing Systems vol. 1 (1975), section 3.2.
    Does not apply: to more than one slot, to lengths that are not exponential (use mg1), to arrivals in bursts, or at
    a utilisation of 1 and above.
    Raises ValueError for a setting that is not a positive number, and when the queue would grow without end.
    """
    rate = check.rate("arrival_rate", arrival_rate)
    service = check.seconds("service_s", service_s)
    rho = check.stable(rate, 1 / service, _REMEDY)
    return MM1(**_means(rate, rho, rho * service / (1 - rho), service, rho), arrival_rate=rate, service_s=service)


@dataclass(frozen=True)
class MD1(QueueMeans):
    """Means of an M/D/1 queue, and the percentiles of its wait."""

    arrival_rate: float
    service_s: float

    def p_wait_within(self, seconds: float) -> float:
        """P(wait <= seconds), by Franx (2001).

        A sum of positive terms: Erlang's alternating sum of 1909 loses all its digits long before the tail is reached.
        """
        seconds = real("seconds", seconds, low=0.0)
        if seconds / self.service_s >= _MOST_SERVICES:
            if exp(-_decay(self.utilisation) * (seconds / self.service_s)) < 1e-17:
                return 1.0
            raise ValueError(
                f"utilisation is {self.utilisation:.9g}, so close to 1 that waits last more than {_MOST_SERVICES:,} "
                "services, too many to add up: lower arrival_rate, or ask for the mean only"
            )
        services = int(seconds // self.service_s) + 1
        load = self.arrival_rate * (services * self.service_s - seconds)
        shares = _at_most_waiting(self.utilisation, 1 << (services - 1).bit_length())  # powers of two: few to remember
        return float(poisson_pmf(np.arange(services), load) @ shares[services - 1 :: -1])

    def wait_percentile_s(self, quantile: float) -> float:
        """Seconds that a share `quantile` of requests wait at most (the root of the line above)."""
        quantile = check.share("quantile", quantile)
        if self.p_wait_within(0.0) >= quantile:
            return 0.0
        high = self.service_s
        while self.p_wait_within(high) < quantile:
            high *= 2
        return crossing(lambda seconds: self.p_wait_within(seconds) - quantile, 0.0, high)


def _decay(rho: float) -> float:
    """P(wait > t services) <= e^(-x t) in M/D/1, where rho (e^x - 1) = x > 0 (Kingman 1964, Lundberg's inequality)."""
    high = 1.0
    while rho * expm1(high) < high:
        high *= 2
    return crossing(lambda x: rho * expm1(x) - x, 0.0, high)


@lru_cache(maxsize=64)
def _at_most_waiting(rho: float, count: int) -> np.ndarray:
    """P(at most n requests wait) for n < count in M/D/1, by crossings between n and n + 1 (positive terms only).

    A departure leaves n + 1 or more behind as often as the number climbs past n, which gives
    pi[n+1] P(0 arrive) = pi[0] P(more than n arrive) + sum over i of pi[i] P(more than n + 1 - i arrive).
    """
    terms = min(count, 60)  # more than 60 arrivals in one service have a probability below 1e-80
    more = pdtrc(np.arange(terms + 1), rho)
    in_system = np.zeros(count + 1)
    in_system[0] = 1 - rho
    for n in range(count):
        first = max(1, n + 1 - terms)
        climbed = in_system[first : n + 1] @ more[n + 1 - first : 0 : -1]
        if n <= terms:
            climbed += in_system[0] * more[n]
        in_system[n + 1] = climbed / exp(-rho)
    return np.cumsum(in_system)[1:]  # at most n wait: at most n + 1 are in the system


def md1(*, arrival_rate: float, service_s: float) -> MD1:
    """M/D/1: every service takes the same time S. Mean wait = rho S / (2 (1 - rho)), half of M/M/1's.

    arrival_rate: requests/s. service_s: the service time S, seconds.
    Source: Erlang (1909); Kleinrock vol. 1 (1975), section 5.7.
    Does not apply: when answers differ in length, with more than one slot, or with arrivals in bursts.
    Raises ValueError as `mm1`.
    """
    rate = check.rate("arrival_rate", arrival_rate)
    service = check.seconds("service_s", service_s)
    rho = check.stable(rate, 1 / service, _REMEDY)
    return MD1(**_means(rate, rho, rho * service / (2 * (1 - rho)), service, rho), arrival_rate=rate, service_s=service)


def mg1(*, arrival_rate: float, mean_service_s: float, service_cv: float) -> QueueMeans:
    """M/G/1: any distribution of service times. Mean wait = rho S (1 + CV^2) / (2 (1 - rho)).

    arrival_rate: requests/s. mean_service_s: mean service time S, seconds. service_cv: standard deviation / mean of the
    service time; 0 gives M/D/1, 1 the means of M/M/1. Percentiles need the whole distribution, so there are none here.
    Source: Pollaczek (1930), Khinchine (1932); Kleinrock vol. 1 (1975), section 5.6.
    Does not apply: with more than one slot, with arrivals in bursts, or when the order depends on the length.
    Raises ValueError as `mm1`, and for a negative service_cv.
    """
    rate = check.rate("arrival_rate", arrival_rate)
    service = check.seconds("mean_service_s", mean_service_s)
    cv = check.spread("service_cv", service_cv)
    rho = check.stable(rate, 1 / service, _REMEDY)
    return QueueMeans(**_means(rate, rho, rho * service * (1 + cv**2) / (2 * (1 - rho)), service, rho))
