"""The queue that fits continuous batching: the batch shares one server whose speed depends on its size.

With n requests in the system, min(n, max_num_seqs) are in the batch and finish at mu(n) requests/s in all. Adding one
speeds up the whole and slows down each. The number in the system is a birth-death chain: up at lambda, down at mu(n).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log

import numpy as np

from course.base.settings import real
from course.queueing import _checks as check
from course.queueing._numeric import crossing, poisson_pmf
from course.queueing.capacity import Demand, StepTime, _seconds, service_rates


@dataclass(frozen=True)
class Sharing:
    """Long-run means of a birth-death queue.

    `p_wait`: all slots are taken on arrival. `p_in_system[n]`: n are in the system, for n up to the slots; beyond, each
    number is `utilisation` times as likely as the one before.
    """

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
        tail = 1 - check.share("quantile", quantile)
        if self.p_wait <= tail:
            return 0.0
        return log(self.p_wait / tail) / (self.capacity_requests_per_s - self.arrival_rate)


def processor_sharing(*, arrival_rate: float, rates: Sequence[float] | np.ndarray) -> Sharing:
    """Birth-death chain with the total service rate rates[n-1] requests/s at n in the system, and rates[-1] beyond.

    arrival_rate: requests/s. rates: one a batch size, from `service_rates` or a list of yours; len(rates) = slots.
    p(n) = p(0) x product of lambda / mu(i), a geometric tail beyond the slots; times follow by Little's law.
    Source: Kleinrock vol. 1 (1975), chapter 3; while slots last, sharing makes it insensitive to the distribution of
    lengths (Cohen 1979, Acta Informatica 12; Kelly, Reversibility and Stochastic Networks, 1979).
    Does not apply: with arrivals in bursts; when many wait and lengths are far from exponential (the order is then
    first come first served, and the chain assumes exponential); when steps are long against the gaps between
    arrivals; when KV memory preempts. With no more than one slot it is M/M/1, whatever the lengths.
    Raises ValueError for a rate that is not positive, and when the queue would grow without end.
    """
    rate = check.rate("arrival_rate", arrival_rate)
    mu = np.array(check.by_size("rates", rates, "service rate"))
    rho = check.stable(rate, float(mu[-1]), "Lower arrival_rate, raise max_num_seqs, or make steps faster.")
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
    """What a user feels, from `sharing` and from the step boundary.

    Who finds a free slot still waits for the step in progress to end, then for the step that holds the own prompt and
    those of all who came meanwhile.

    `landings`: (share of arrivals, seconds of the step in progress) of those who land in an idle engine, in a step of
    decodes, in a step with a prompt. `prefill_steps_s[k]`: seconds of a step with k + 1 prompts.
    """

    sharing: Sharing
    landings: tuple[tuple[float, float], ...]
    prefill_steps_s: tuple[float, ...]
    mean_ttft_s: float
    mean_e2e_s: float

    def p_ttft_above(self, seconds: float) -> float:
        """P(TTFT > t): p_wait wait for a slot and start at a boundary; the others see what is left of a step."""
        chain, t = self.sharing, real("seconds", seconds, low=0.0)
        drain = chain.capacity_requests_per_s - chain.arrival_rate
        above = 0.0
        for own, landings in self._starts:
            rest = t - own  # what of t is over when the own step begins
            unslotted = chain.p_wait * exp(-drain * max(rest, 0.0))
            for weight, step in landings:
                above += weight * (unslotted + (1 - chain.p_wait) * _p_rest_above(rest, step))
        return above

    @cached_property
    def _starts(self) -> tuple[tuple[float, tuple[tuple[float, float], ...]], ...]:
        """(seconds of the own step, landings that lead there), for 1, 2, 3 and 4 prompts in it.

        Each landing as the share of arrivals that land there and start in such company, and the seconds of the step in
        progress. Plain floats: a percentile asks for p_ttft_above some fifty times, and an explorer for a hundred
        percentiles a line.
        """
        shares = [landed * _company(self.sharing.arrival_rate * step) for landed, step in self.landings]
        steps = [step for _, step in self.landings]
        return tuple(
            (own, tuple(zip((float(row[k]) for row in shares), steps, strict=True)))
            for k, own in enumerate(self.prefill_steps_s)
        )

    def ttft_percentile_s(self, quantile: float) -> float:
        """Seconds within which a share `quantile` of requests has a first token."""
        tail = 1 - check.share("quantile", quantile)
        high = self.prefill_steps_s[0]
        while self.p_ttft_above(high) > tail:
            high *= 2
        return crossing(lambda t: tail - self.p_ttft_above(t), 0.0, high)


def _company(mean: float) -> np.ndarray:
    """P(0, 1, 2, 3 or more others come in the same step), the last entry with all that is left."""
    shares = poisson_pmf(np.arange(4.0), mean)
    shares[-1] = 1 - shares[:-1].sum()
    return shares


def _p_rest_above(seconds: float, step: float) -> float:
    """P(what is left, at a random arrival, of a step of `step` seconds is above `seconds`)."""
    if seconds <= 0:
        return 1.0
    return max(0.0, 1 - seconds / step) if step else 0.0


def continuous_batching(
    need: Demand,
    step_time: StepTime,
    *,
    arrival_rate: float,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    rates: Sequence[float] | np.ndarray | None = None,
) -> BatchingForecast:
    """Forecast for `policies.Continuous`: `processor_sharing` with `service_rates`, and the step boundary added.

    need: from `demand` or `demand_of`. step_time: a model of `course.steptime`. arrival_rate: requests/s, Poisson.
    rates: the result of `service_rates` with the same settings, for callers that ask at many arrival rates.
    Prompts that start in one step are at most four, all of mean length and whole: TTFT is too low if prompts take
    several chunks, and its tail is too thin if prompts differ much.
    Does not apply: as `processor_sharing` and `continuous_capacity`.
    """
    check.kind("need", need, Demand, "demand(prompt_tokens=512, output_tokens=128)")
    check.step_model(step_time)
    if rates is None:
        rates = service_rates(need, step_time, max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens)
    chain = processor_sharing(arrival_rate=arrival_rate, rates=rates)
    others, prompt = chain.mean_in_batch_requests, round(need.prompt_tokens)
    plain = _seconds(step_time, max(others, 1.0), need.context_tokens, 0, 1)
    prefills = tuple(_seconds(step_time, max(others - k, 0.0), need.context_tokens, k, prompt) for k in (1, 2, 3, 4))
    # Share of time in steps with a prompt: arrivals a second, over those that share a step, times its seconds.
    company = _company(chain.arrival_rate * plain)
    mixed = chain.arrival_rate * float(company @ (np.array(prefills) / np.arange(1, 5)))
    busy = 1 - chain.p_idle
    mixed = min(mixed, busy)
    landings = ((chain.p_idle, 0.0), (busy - mixed, plain), (mixed, prefills[0]))
    residual = sum(landed * step for landed, step in landings) / 2
    own = sum(landed * float(_company(chain.arrival_rate * step) @ prefills) for landed, step in landings)
    return BatchingForecast(
        sharing=chain,
        landings=landings,
        prefill_steps_s=prefills,
        mean_ttft_s=chain.mean_wait_s + (1 - chain.p_wait) * residual + own,
        mean_e2e_s=chain.mean_time_in_system_s + (1 - chain.p_wait) * residual,
    )
