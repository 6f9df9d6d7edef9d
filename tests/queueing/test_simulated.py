"""The formulas against `serve`, each in the limit where it applies, and a measure of how wrong it is outside.

Ten independent replications give a mean and a t interval. At 99.9% one honest comparison in a thousand would miss; the
seeds are fixed, so what passes once passes always. The first tenth of each run is left out: it starts empty.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import t as student

from course import policies
from course import queueing as q
from course.engine.run import Run
from course.engine.serving import serve
from course.steptime import PowerLaw, Roofline
from course.workload import Workload, lengths

CONSTANT = PowerLaw(1e-3, 0, 1)  # every step takes 1 ms, whatever is in it
SLOT = policies.Continuous(max_num_seqs=1, max_num_batched_tokens=1)


Value = Callable[[Run], np.ndarray]


def measure(load: Callable[[int], Workload], policy, step_time, *values: Value, runs: int = 10) -> np.ndarray:
    """For each value: the mean over replications of its mean past the first tenth, and half its 99.9% interval."""
    means = []
    for seed in range(100, 100 + runs):
        run = serve(load(seed), policy, step_time)
        means.append([value(run)[len(run) // 10 :].mean() for value in values])
    half = student.ppf(0.9995, runs - 1) * np.std(means, axis=0, ddof=1) / np.sqrt(runs)
    return np.array([np.mean(means, axis=0), half]).T


def wait(run: Run) -> np.ndarray:
    return run.queue_wait


def e2e(run: Run) -> np.ndarray:
    return run.e2e


def waits_longer_than(seconds: float) -> Value:
    """A wait of exactly n services is a difference of two sums; a nanosecond keeps rounding out of the count."""
    return lambda run: run.queue_wait > seconds + 1e-9


def poisson(
    rate: float, output_tokens, num_requests: int = 10_000, prompt_tokens: int = 1
) -> Callable[[int], Workload]:
    return lambda seed: Workload.poisson(
        rate=rate, num_requests=num_requests, prompt_tokens=prompt_tokens, output_tokens=output_tokens, seed=seed
    )


@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_one_slot_and_equal_lengths_is_md1(load):
    theory = q.md1(arrival_rate=load / 0.020, service_s=0.020)
    # The 90th percentile: further out a run of this length holds a handful of busy spells, and no t interval fits.
    points = (0.0, theory.wait_percentile_s(0.9))
    requests = poisson(load / 0.020, output_tokens=20)
    mean, *tails = measure(requests, SLOT, CONSTANT, wait, *map(waits_longer_than, points))
    assert mean[0] == pytest.approx(theory.mean_wait_s, abs=mean[1])
    for seconds, (share, half) in zip(points, tails, strict=True):
        assert share == pytest.approx(1 - theory.p_wait_within(seconds), abs=half)


@pytest.mark.parametrize(
    ("output_tokens", "cv"),
    [
        (lengths.geometric(20), np.sqrt(1 - 1 / 20)),  # p = 1 / mean: the variance is (1 - p) / p^2
        (lengths.uniform(1, 39), np.sqrt((39**2 - 1) / 12) / 20),
        (lengths.lognormal(200, 0.5), 0.5),  # rounding to whole tokens adds 1/12 to a variance of 10,000
    ],
)
def test_one_slot_and_drawn_lengths_is_mg1(output_tokens, cv):
    service = output_tokens.mean * 1e-3
    theory = q.mg1(arrival_rate=0.7 / service, mean_service_s=service, service_cv=cv)
    ((mean, half),) = measure(poisson(0.7 / service, output_tokens), SLOT, CONSTANT, wait)
    assert mean == pytest.approx(theory.mean_wait_s, abs=half)


def test_number_in_system_of_mg1_follows_by_little():
    theory = q.mg1(arrival_rate=35.0, mean_service_s=0.020, service_cv=np.sqrt(1 - 1 / 20))
    requests = poisson(35.0, lengths.geometric(20))
    means = [serve(requests(seed), SLOT, CONSTANT).little().L for seed in range(10)]
    half = student.ppf(0.9995, 9) * np.std(means, ddof=1) / np.sqrt(10)
    assert np.mean(means) == pytest.approx(theory.mean_in_system_requests, abs=half)


EIGHT = policies.Continuous(max_num_seqs=8, max_num_batched_tokens=8)


def test_eight_slots_geometric_lengths_and_short_steps_is_mmc_plus_the_step_boundary():
    tokens = 200  # a step is 0.5% of a service
    rate = 6.4 / (tokens * 1e-3)
    theory = q.mmc(arrival_rate=rate, service_s=tokens * 1e-3, servers=8)
    requests = poisson(rate, lengths.geometric(tokens))
    (time, half), (above, spread) = measure(requests, EIGHT, CONSTANT, e2e, waits_longer_than(1e-3))
    # An arrival waits for the step in progress: half a step, less for those who wait for a slot anyway.
    assert theory.mean_time_in_system_s - half < time < theory.mean_time_in_system_s + 0.5e-3 + half
    # Erlang's C is the chance to wait for a slot: longer than the one step that anybody may wait. A boundary moves the
    # wait by up to a step, and with it the share by up to C (c mu - lambda) steps, below 0.01.
    assert above == pytest.approx(theory.p_wait_above(1e-3), abs=spread + 0.01)


@pytest.mark.parametrize(("tokens", "load"), [(2, 0.8), (10, 0.8), (10, 0.95), (200, 0.8)])
def test_eight_slots_geometric_lengths_and_steps_of_any_length_is_the_stepped_chain(tokens, load):
    rate = 8 * load / (tokens * 1e-3)
    theory = q.stepped_servers(arrival_rate=rate, step_s=1e-3, mean_tokens=tokens, max_num_seqs=8)
    requests = poisson(rate, lengths.geometric(tokens))
    (time, half), (waited, spread) = measure(requests, EIGHT, CONSTANT, e2e, waits_longer_than(0))
    assert time == pytest.approx(theory.mean_time_in_system_s, abs=half)
    assert waited == pytest.approx(theory.p_wait, abs=spread)


def test_erlang_does_not_hold_when_steps_are_long():
    # Two tokens an answer: a request stays two steps and arrives in the middle of one. Nearly everybody waits.
    rate = 6.4 / 2e-3
    theory = q.mmc(arrival_rate=rate, service_s=2e-3, servers=8)
    ((waited, _),) = measure(poisson(rate, lengths.geometric(2)), EIGHT, CONSTANT, waits_longer_than(0), runs=2)
    assert theory.p_wait == pytest.approx(0.458, abs=1e-3)
    assert waited > 0.99


BATCH_S = np.array([5e-3 + 1e-3 * b + 3 * (5e-3 + 0.4e-3 * b) for b in range(1, 9)])  # a prefill and three decodes


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_dynamic_batching_without_delay_is_bulk_service(share):
    rate = share * 8 / BATCH_S[-1]
    theory = q.bulk_service(arrival_rate=rate, batch_s=BATCH_S)
    policy, step = policies.Dynamic(max_num_seqs=8, max_queue_delay=0), PowerLaw(5e-3, 0.4e-3, 1, prefill=1e-3)
    ((time, half),) = measure(poisson(rate, output_tokens=4), policy, step, e2e)
    assert time == pytest.approx(theory.mean_time_in_system_s, abs=half)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_static_batching_stays_within_its_bounds(share):
    rate = share * 8 / BATCH_S[-1]
    bounds = q.static_batching(arrival_rate=rate, max_num_seqs=8, mean_batch_s=BATCH_S[-1])
    policy, step = policies.Static(max_num_seqs=8), PowerLaw(5e-3, 0.4e-3, 1, prefill=1e-3)
    ((time, half),) = measure(poisson(rate, output_tokens=4), policy, step, e2e)
    assert bounds.mean_time_in_system_low_s - half < time < bounds.mean_time_in_system_high_s + half


@pytest.mark.parametrize("cv", [0.0, 0.3, 1.0, 2.0])
def test_saturated_gain_of_continuous_over_static_is_the_bound_when_steps_are_constant(cv):
    requests = poisson(1e6, lengths.lognormal(128, cv), 32 * 400)(0)
    static = serve(requests, policies.Static(max_num_seqs=32), CONSTANT).makespan
    continuous = serve(requests, policies.Continuous(max_num_seqs=32, max_num_batched_tokens=2048), CONSTANT).makespan
    bound = q.lognormal_gain(batch=32, output_cv=cv).gain
    # Four hundred batches: the mean of their maxima is known to about 3% at a CV of 2, and the mean length to as much.
    # Continuous batching loses its last moments, when the batch runs empty: one long answer in 400 batches.
    assert static / continuous == pytest.approx(bound, rel=0.08)


CHAT = q.demand(prompt_tokens=512, output_tokens=256, output_cv=1.0)
LINEAR = PowerLaw(5.5e-3, 30e-6, 1, prefill=25e-6, context=45e-9)
ROOFLINE = Roofline("llama-3.1-8b", "H100")
SLOTS = dict(max_num_seqs=32, max_num_batched_tokens=2048)


@pytest.mark.parametrize("model", [LINEAR, ROOFLINE], ids=["linear", "roofline"])
def test_capacity_by_hand_is_what_a_full_queue_gets(model):
    full = q.continuous_capacity(CHAT, model, **SLOTS)
    run = serve(poisson(1e6, lengths.lognormal(256, 1), 20_000, 512)(0), policies.Continuous(**SLOTS), model)
    # The sample's mean length is known to 1 / sqrt(20,000) = 0.7% and the run ends with a batch that drains.
    assert len(run) / run.makespan == pytest.approx(full.requests_per_s, rel=0.02)


@pytest.mark.parametrize("model", [LINEAR, ROOFLINE], ids=["linear", "roofline"])
@pytest.mark.parametrize(("load", "tolerance"), [(0.3, 0.01), (0.6, 0.015), (0.8, 0.03), (0.9, 0.06)])
def test_processor_sharing_fits_continuous_batching(model, load, tolerance):
    """E2E within 1% at low load and 6% at 0.9. Sharing holds for any lengths while nobody waits for a slot; when many
    do, lengths (lognormal here) and the steps that prompts take begin to matter, and the chain overestimates."""
    rate = load * q.continuous_capacity(CHAT, model, **SLOTS).requests_per_s
    theory = q.continuous_batching(CHAT, model, arrival_rate=rate, **SLOTS)
    requests = poisson(rate, lengths.lognormal(256, 1), 10_000, 512)
    ((time, half),) = measure(requests, policies.Continuous(**SLOTS), model, e2e, runs=5)
    assert theory.mean_e2e_s == pytest.approx(time, abs=half + tolerance * time)


@pytest.mark.parametrize(("load", "p99_tolerance"), [(0.3, 0.05), (0.6, 0.10), (0.8, 0.15)])
def test_the_forecast_knows_the_whole_distribution_of_ttft(load, p99_tolerance):
    """Median, p90 and p99 of TTFT. The 1% tail of 40,000 requests is 400, most of them from a few busy spells: 15%."""
    rate = load * q.continuous_capacity(CHAT, ROOFLINE, **SLOTS).requests_per_s
    theory = q.continuous_batching(CHAT, ROOFLINE, arrival_rate=rate, **SLOTS)
    ttft = serve(poisson(rate, lengths.lognormal(256, 1), 40_000, 512)(0), policies.Continuous(**SLOTS), ROOFLINE).ttft
    for quantile, tolerance in ((0.5, 0.02), (0.9, 0.05), (0.99, p99_tolerance)):
        assert theory.ttft_percentile_s(quantile) == pytest.approx(np.quantile(ttft, quantile), rel=tolerance)
    assert theory.mean_ttft_s == pytest.approx(ttft.mean(), rel=0.05)


def test_sharing_knows_when_ttft_turns():
    """The p99 of TTFT leaves the floor when 1% find all slots taken; the mean still shows nothing of it."""
    capacity = q.continuous_capacity(CHAT, ROOFLINE, **SLOTS).requests_per_s
    policy = policies.Continuous(**SLOTS)
    means, tails, forecasts = [], [], []
    for load in (0.55, 0.8):
        rate = load * capacity
        run = serve(poisson(rate, lengths.lognormal(256, 1), 40_000, 512)(0), policy, ROOFLINE)
        means.append(run.ttft.mean())
        tails.append(np.percentile(run.ttft, 99))
        forecasts.append(q.continuous_batching(CHAT, ROOFLINE, arrival_rate=rate, **SLOTS))
    assert forecasts[0].sharing.p_wait < 0.01 < forecasts[1].sharing.p_wait
    assert forecasts[0].sharing.wait_percentile_s(0.99) == 0 < forecasts[1].sharing.wait_percentile_s(0.99)
    assert tails[1] / tails[0] > 10 and means[1] / means[0] < 4


def test_bursts_break_every_formula_that_assumes_poisson_arrivals():
    rate = 0.7 * q.continuous_capacity(CHAT, ROOFLINE, **SLOTS).requests_per_s
    theory = q.continuous_batching(CHAT, ROOFLINE, arrival_rate=rate, **SLOTS)

    def bursty(seed: int) -> Workload:
        return Workload.gamma(
            rate=rate,
            cv=4,
            num_requests=10_000,
            prompt_tokens=512,
            output_tokens=lengths.lognormal(256, 1),
            seed=seed,
        )

    policy = policies.Continuous(**SLOTS)
    means = [serve(bursty(seed), policy, ROOFLINE).ttft.mean() for seed in range(5)]
    # Bursts are rare and long, so runs differ by a factor of ten; the calmest of them is still far from the theory.
    assert min(means) > 5 * theory.mean_ttft_s
