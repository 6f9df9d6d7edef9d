"""What request-level batching loses to the longest answer in the batch, and what waiting for a full batch costs.

A static batch of b answers runs until the longest ends: max(L1 ... Lb) steps for b x mean(L) slot-steps of wanted work.
A continuous batch refills a slot as soon as it is free. With equal step times and a queue that never empties, the ratio
of their throughputs is E[max of b] / E[L], where the lengths in a batch are drawn independently.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p, sqrt

import numpy as np
from scipy.special import log_ndtr, ndtri

from course.base.settings import real
from course.queueing import _checks as check
from course.workload.columns import tokens


@dataclass(frozen=True)
class GainBound:
    """`gain` is throughput of continuous over static batching, at most; `longest_tokens` is E[max of the batch]."""

    gain: float
    mean_tokens: float
    longest_tokens: float
    wasted_share: float


def _bound(mean: float, longest: float) -> GainBound:
    longest = max(longest, mean)  # rounding may leave it a hair below
    return GainBound(gain=longest / mean, mean_tokens=mean, longest_tokens=longest, wasted_share=1 - mean / longest)


def fixed_gain(*, batch: int, mean_tokens: float = 1.0) -> GainBound:
    """Equal lengths: the longest is the mean, and the gain is 1 at every batch."""
    check.slots("batch", batch)
    mean = check.length("mean_tokens", mean_tokens, check.SMALLEST)
    return _bound(mean, mean)


def exponential_gain(*, batch: int, mean_tokens: float = 1.0) -> GainBound:
    """Exponential lengths (CV 1): the harmonic number 1 + 1/2 + ... + 1/b, 4.06 at 32.

    While i answers of the batch remain, the next to end is 1 / i of a mean away. Source: Renyi (1953).
    """
    mean = check.length("mean_tokens", mean_tokens, check.SMALLEST)
    return _bound(mean, mean * float(np.sum(1 / np.arange(check.slots("batch", batch), 0, -1))))


def lognormal_gain(*, batch: int, output_cv: float, mean_tokens: float = 1.0) -> GainBound:
    """Lognormal lengths of mean `mean_tokens` and coefficient of variation `output_cv`.

    E[max] = integral of 1 - F(x)^b, by Gauss-Legendre integration (relative error below 1e-9 up to a CV of 100).
    Rounding to whole tokens is left out; below a mean of about 16 tokens use empirical_gain.
    """
    count, mean = check.slots("batch", batch), check.length("mean_tokens", mean_tokens, check.SMALLEST)
    cv = real("output_cv", output_cv, low=0.0, high=100.0)
    if cv == 0:
        return _bound(mean, mean)
    sigma = sqrt(log1p(cv**2))
    # With z = (ln x - mu) / sigma, E[max] = integral over z of P(largest above z) x'(z). Left of `low` the largest
    # is above z for certain, which adds x(low); right of `high` the chance that any is longer vanishes.
    low, high = -9.0 - sigma, float(-ndtri(1e-25 / count)) + sigma
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(low, high, 65)
    half = (edges[1] - edges[0]) / 2
    z = (edges[:-1, None] + half + half * nodes).ravel()
    longer = -np.expm1(count * log_ndtr(z))
    area = half * float(np.tile(weights, 64) @ (longer * sigma * np.exp(sigma * z - sigma**2 / 2)))
    return _bound(mean, mean * (area + float(np.exp(sigma * low - sigma**2 / 2))))


def empirical_gain(*, batch: int, output_tokens: Sequence[int]) -> GainBound:
    """Any lengths, from a sample such as a trace's: E[max] over batches drawn from it with replacement. Exact.

    The i-th smallest of n values is the largest of the batch with probability (i / n)^b - ((i - 1) / n)^b.
    Raises ValueError for an empty sample or a count that is not a whole number of at least 1.
    """
    count, values = check.slots("batch", batch), np.sort(tokens("output_tokens", output_tokens))
    if not len(values):
        raise ValueError("output_tokens is empty: give the length of at least one answer")
    largest = np.diff((np.arange(len(values) + 1) / len(values)) ** count)
    return _bound(float(values.mean()), float(values @ largest))


@dataclass(frozen=True)
class StaticBatching:
    """Bounds on the mean time in system of static batching. `mean_fill_s` is exact: the wait for the batch to fill."""

    utilisation: float
    mean_fill_s: float
    mean_server_wait_low_s: float
    mean_server_wait_high_s: float
    mean_time_in_system_low_s: float
    mean_time_in_system_high_s: float


def static_batching(
    *, arrival_rate: float, max_num_seqs: int, mean_batch_s: float, batch_cv: float = 0.0
) -> StaticBatching:
    """Full batches only, Poisson arrivals: batches are the customers of an E_b/G/1 queue.

    arrival_rate: requests/s. max_num_seqs: b, requests a batch. mean_batch_s, batch_cv: mean seconds of a full batch
    and its coefficient of variation. A request waits (b - 1) / (2 lambda) on average for its batch to fill, which grows
    as load falls; then for the server, at least Marshall's bound (1968) and at most Kingman's,
    lambda_b (var_a + var_s) / (2 (1 - rho)) with the rate lambda_b = lambda / b of batches and var_a = b / lambda^2.
    Source: Kingman (1962); Kleinrock vol. 2 (1976), section 2.3. Stable while lambda mean_batch_s < b.
    Does not apply: to a batcher with a delay (use bulk_service), or to continuous batching.
    Raises ValueError for a setting out of range, and when the queue would grow without end.
    """
    rate, size = check.rate("arrival_rate", arrival_rate), check.slots("max_num_seqs", max_num_seqs)
    seconds, cv = check.seconds("mean_batch_s", mean_batch_s), check.spread("batch_cv", batch_cv)
    rho = check.stable(rate, size / seconds, "Lower arrival_rate, serve larger batches, or make them faster.")
    batches, spread = rate / size, (cv * seconds) ** 2
    fill = (size - 1) / (2 * rate)
    high = batches * (size / rate**2 + spread) / (2 * (1 - rho))
    low = max(0.0, (batches**2 * spread + rho * (rho - 2)) / (2 * batches * (1 - rho)))
    return StaticBatching(
        utilisation=rho,
        mean_fill_s=fill,
        mean_server_wait_low_s=low,
        mean_server_wait_high_s=high,
        mean_time_in_system_low_s=fill + low + seconds,
        mean_time_in_system_high_s=fill + high + seconds,
    )
