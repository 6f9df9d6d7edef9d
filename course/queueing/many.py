"""Many servers, each busy with one request at its own constant speed: M/M/c.

A batch of c slots looks like c servers, and is one only while a step takes the same time whatever the batch holds. Real
steps grow with the batch, and no request starts between two steps: `stepped_servers` shows what the second point costs,
`processor_sharing` what the first does.
"""

from dataclasses import dataclass
from math import exp, log

from course.base.settings import real
from course.queueing import _checks as check
from course.queueing._numeric import crossing
from course.queueing.single import QueueMeans, _means


@dataclass(frozen=True)
class MMc(QueueMeans):
    """Means of an M/M/c queue and its percentiles. `offered_load` is lambda S, the mean number of busy servers."""

    arrival_rate: float
    service_s: float
    servers: int
    offered_load: float

    def p_wait_above(self, seconds: float) -> float:
        """P(wait > t) = C e^(-(c mu - lambda) t), where C is Erlang's probability of waiting."""
        return self.p_wait * exp(-self._drain_per_s * real("seconds", seconds, low=0.0))

    def wait_percentile_s(self, quantile: float) -> float:
        """0 until one request in 1 / (1 - quantile) waits; then it grows from 0 without bound as load nears 1."""
        tail = 1 - check.share("quantile", quantile)
        return log(self.p_wait / tail) / self._drain_per_s if self.p_wait > tail else 0.0

    def p_time_in_system_above(self, seconds: float) -> float:
        """P(wait + service > t): an exponential service, plus an exponential wait for the share C that waits."""
        services = real("seconds", seconds, low=0.0) / self.service_s
        spare = self.servers - 1 - self.offered_load  # (c mu - lambda - mu) / mu
        if abs(spare) < 1e-9:
            return exp(-services) * (1 + self.p_wait * min(services, 1e3))  # e^-1000 is 0
        # e^-x (1 - e^(-x spare)) / spare, written so that it cannot overflow where spare is below 0.
        return exp(-services) + self.p_wait * (exp(-services) - exp(-services * (1 + spare))) / spare

    def time_in_system_percentile_s(self, quantile: float) -> float:
        """Seconds within which a share `quantile` of requests is answered (the root of a closed form)."""
        tail = 1 - check.share("quantile", quantile)
        high = self.service_s
        while self.p_time_in_system_above(high) > tail:
            high *= 2
        return crossing(lambda t: tail - self.p_time_in_system_above(t), 0.0, high)

    @property
    def _drain_per_s(self) -> float:
        return self.servers / self.service_s - self.arrival_rate


def erlang_c(*, offered_load: float, servers: int) -> float:
    """Erlang's C: the probability that an arrival finds all servers busy.

    offered_load: lambda S, in servers' worth of work. servers: c.
    Through Erlang B, B(c) = a B(c-1) / (c + a B(c-1)), since the factorials of the textbook sum overflow from c = 171.
    Source: Erlang (1917); Kleinrock vol. 1 (1975), section 3.5.
    Raises ValueError when offered_load reaches the number of servers.
    """
    load = real("offered_load", offered_load, above=0.0)
    count = check.slots("servers", servers)
    check.stable(load, count, "Add servers or lower the load.")
    blocked = 1.0
    for busy in range(1, count + 1):
        blocked = load * blocked / (busy + load * blocked)
    return blocked / (1 - load / count * (1 - blocked))


def mmc(*, arrival_rate: float, service_s: float, servers: int) -> MMc:
    """M/M/c: c servers, exponential service times. Mean wait = C / (c mu - lambda).

    arrival_rate: requests/s. service_s: mean time on one server, seconds. servers: c.
    Source: Erlang (1917); Kleinrock vol. 1 (1975), section 3.5.
    Applies to an engine with c slots when the step time does not depend on the batch, lengths are geometric, and a step
    is short against a service. Does not apply: when a step takes longer with more sequences in it (every real engine;
    use processor_sharing), when steps are long against a service (use stepped_servers), or with arrivals in bursts.
    Raises ValueError for a setting that is not a positive number, and when the queue would grow without end.
    """
    rate = check.rate("arrival_rate", arrival_rate)
    service = check.seconds("service_s", service_s)
    count = check.slots("servers", servers)
    rho = check.stable(rate, count / service, "Lower arrival_rate, shorten the service, or add servers.")
    p_wait = erlang_c(offered_load=rate * service, servers=count)
    wait = p_wait / (count / service - rate)
    return MMc(
        **_means(rate, p_wait, wait, service, rho),
        arrival_rate=rate,
        service_s=service,
        servers=count,
        offered_load=rate * service,
    )
