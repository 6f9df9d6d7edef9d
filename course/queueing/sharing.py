"""The queue that fits continuous batching: everybody in the batch shares one server whose speed depends on how many.

With n requests in the system, min(n, max_num_seqs) are in the batch and finish at mu(n) requests/s in all. Adding one
speeds up the whole and slows down each. The number in the system is a birth-death chain: up at lambda, down at mu(n).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from course.queueing._checks import share, stable
from course.queueing.capacity import Demand, StepTime, _seconds, service_rates
from course.settings import real


@dataclass(frozen=True)
class Sharing:
    """Long-run means of a birth-death queue. `p_wait`: all slots are taken on arrival. `p_in_system[n]`: n are in the
    system, for n up to the slots; beyond, each number is `utilisation` times as likely as the one before."""

    arrival_rate: float
    capacity_requests_per_s: float
    utilisation: float
    p_idle: float
    p_wait: float
    mean_wait_s: float
    mean_time_in_system_s: float
    mean_waiting_requests: float
    mean_in_batch_requests: float
    mean_in_system_requests: float
    p_in_system: np.ndarray

    def p_wait_above(self, seconds: float) -> float:
        """P(wait for a slot > t) = p_wait e^(-(mu - lambda) t), with mu the capacity: as in M/M/c."""
        return self.p_wait * exp(
            -(self.capacity_requests_per_s - self.arrival_rate) * real("seconds", seconds, low=0.0)
        )

    def wait_percentile_s(self, quantile: float) -> float:
        """0 while fewer than 1 - quantile of the requests find all slots taken; above that, it grows fast."""
        tail = 1 - share("quantile", quantile)
        if self.p_wait <= tail:
            return 0.0
        return log(self.p_wait / tail) / (self.capacity_requests_per_s - self.arrival_rate)


def processor_sharing(*, arrival_rate: float, rates: Sequence[float]) -> Sharing:
    """Birth-death chain with the total service rate rates[n-1] requests/s at n in the system, and rates[-1] beyond.

    arrival_rate: requests/s. rates: one a batch size, from `service_rates` or a list of yours; len(rates) = slots.
    p(n) = p(0) x product of lambda / mu(i), a geometric tail beyond the slots; times follow by Little's law.
    Source: Kleinrock vol. 1 (1975), chapter 3; while slots last, sharing makes it insensitive to the distribution of
    lengths (Cohen 1979, Acta Informatica 12; Kelly, Reversibility and Stochastic Networks, 1979).
    Does not apply: with arrivals in bursts; when many wait and lengths are far from exponential (the order is then
    first come first served, and the chain assumes exponential); where steps are long against the gaps between
    arrivals; when KV memory preempts. With no more than one slot it is M/M/1, whatever the lengths.
    Raises ValueError for a rate that is not positive, and when the queue would grow without end.
    """
    rate = real("arrival_rate", arrival_rate, above=0.0)
    mu = np.array([real(f"rates[{i}]", value, above=0.0) for i, value in enumerate(rates)])
    if not len(mu):
        raise ValueError("rates is empty: give the service rate with 1, 2, ... requests in the batch")
    rho = stable(rate, float(mu[-1]), "Lower arrival_rate, raise max_num_seqs, or make steps faster.")
    logs = np.concatenate(([0.0], np.cumsum(np.log(rate / mu))))  # products of hundreds of factors overflow
    weights = np.exp(logs - logs.max())
    tail = weights[-1] * rho / (1 - rho)  # more in the system than slots
    p = weights / (weights.sum() + tail)
    full = p[-1]
    waiting = full * rho / (1 - rho) ** 2
    in_batch = float(np.arange(len(p)) @ p + (len(p) - 1) * full * rho / (1 - rho))
    p.flags.writeable = False
    return Sharing(
        arrival_rate=rate,
        capacity_requests_per_s=float(mu[-1]),
        utilisation=rho,
        p_idle=float(p[0]),
        p_wait=float(full / (1 - rho)),
        mean_wait_s=float(waiting) / rate,
        mean_time_in_system_s=(in_batch + float(waiting)) / rate,
        mean_waiting_requests=float(waiting),
        mean_in_batch_requests=in_batch,
        mean_in_system_requests=in_batch + float(waiting),
        p_in_system=p,
    )


@dataclass(frozen=True)
class BatchingForecast:
    """What a user feels. Times add half a step to `sharing`'s: an arrival waits for the step in progress to end."""

    sharing: Sharing
    residual_step_s: float
    prefill_step_s: float
    mean_ttft_s: float
    mean_e2e_s: float

    def ttft_percentile_s(self, quantile: float) -> float:
        """The wait for a slot at this quantile, plus the mean residual step and the step of the prefill: right where
        waiting for a slot dominates, a little low where nobody waits (the residual is not constant)."""
        return self.sharing.wait_percentile_s(quantile) + self.residual_step_s + self.prefill_step_s


def continuous_batching(
    need: Demand, step_time: StepTime, *, arrival_rate: float, max_num_seqs: int, max_num_batched_tokens: int
) -> BatchingForecast:
    """Forecast for `policies.Continuous`: `processor_sharing` with `service_rates`, and the step boundary added.

    need: from `demand` or `demand_of`. step_time: a model of `course.steptime`. arrival_rate: requests/s, Poisson.
    The residual step is half a mean step for the share of arrivals that find the engine busy. The prefill step holds
    the mean batch and one whole prompt, so TTFT is too low where prompts take several chunks.
    Does not apply: as `processor_sharing` and `continuous_capacity`.
    """
    settings = {"max_num_seqs": max_num_seqs, "max_num_batched_tokens": max_num_batched_tokens}
    chain = processor_sharing(arrival_rate=arrival_rate, rates=service_rates(need, step_time, **settings))
    others = chain.mean_in_batch_requests
    plain = _seconds(step_time, max(others, 1.0), need.context_tokens, 0, 1)
    prefill = _seconds(step_time, max(others - 1, 0.0), need.context_tokens, 1, round(need.prompt_tokens))
    prefills = chain.arrival_rate * prefill  # share of time spent in steps with a prompt, which arrivals hit more often
    residual = (1 - chain.p_idle) * ((1 - prefills) * plain + prefills * prefill) / 2
    return BatchingForecast(
        sharing=chain,
        residual_step_s=residual,
        prefill_step_s=prefill,
        mean_ttft_s=chain.mean_wait_s + residual + prefill,
        mean_e2e_s=chain.mean_time_in_system_s + residual,
    )
