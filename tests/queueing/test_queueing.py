"""The formulas against each other, against direct sums, and against what they must refuse. Against the simulator:
test_queueing_simulated.py."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaincc, gammaln

from course import queueing as q
from course.steptime import PowerLaw

loads = st.floats(0.01, 0.99)
services = st.floats(1e-3, 1e3)
# Formulas that are equal on paper differ by rounding, which 1 / (1 - load) magnifies a hundredfold at a load of 0.99.
SAME = dict(rel=1e-9)


@given(loads, services)
def test_one_server_of_many_is_mm1(load, service):
    one = q.mm1(arrival_rate=load / service, service_s=service)
    many = q.mmc(arrival_rate=load / service, service_s=service, servers=1)
    assert many.mean_wait_s == pytest.approx(one.mean_wait_s, **SAME)
    assert many.p_wait == pytest.approx(one.p_wait, **SAME)
    for quantile in (0.5, 0.99):
        assert many.wait_percentile_s(quantile) == pytest.approx(one.wait_percentile_s(quantile), abs=1e-9 * service)
        # The root finder stops at a relative 1e-12 of its bracket.
        same = pytest.approx(one.time_in_system_percentile_s(quantile), rel=1e-8)
        assert many.time_in_system_percentile_s(quantile) == same


@given(loads, services)
def test_mg1_holds_mm1_and_md1_as_its_special_cases(load, service):
    rate = load / service
    exponential = q.mg1(arrival_rate=rate, mean_service_s=service, service_cv=1)
    constant = q.mg1(arrival_rate=rate, mean_service_s=service, service_cv=0)
    assert exponential.mean_wait_s == pytest.approx(q.mm1(arrival_rate=rate, service_s=service).mean_wait_s, **SAME)
    assert constant.mean_wait_s == pytest.approx(q.md1(arrival_rate=rate, service_s=service).mean_wait_s, **SAME)
    assert exponential.mean_wait_s == pytest.approx(2 * constant.mean_wait_s, **SAME)


@given(loads, st.integers(1, 150))
def test_erlang_c_equals_its_textbook_sum(load, servers):
    # 170! is the largest factorial a float holds, so the direct sum is summed as logarithms.
    offered = load * servers
    busy = np.arange(servers)
    terms = np.exp(busy * math.log(offered) - gammaln(busy + 1))
    last = math.exp(servers * math.log(offered) - math.lgamma(servers + 1)) / (1 - load)
    assert q.erlang_c(offered_load=offered, servers=servers) == pytest.approx(last / (terms.sum() + last), rel=1e-8)


def test_erlang_c_at_thousands_of_servers_agrees_with_the_incomplete_gamma_function():
    servers, offered = 5_000, 4_950.0
    poisson_below = gammaincc(servers, offered)  # P(Poisson(offered) < servers)
    term = math.exp(servers * math.log(offered) - offered - math.lgamma(servers + 1)) / (1 - offered / servers)
    expected = term / (poisson_below + term)
    # lgamma of 5,000 is about 37,600 with 16 digits, which leaves 11 after the exponential.
    assert q.erlang_c(offered_load=offered, servers=servers) == pytest.approx(expected, rel=1e-8)


def test_erlang_c_of_eight_servers_at_load_08():
    assert q.erlang_c(offered_load=6.4, servers=8) == pytest.approx(0.4576, abs=5e-5)


@pytest.mark.parametrize("load", [0.2, 0.8, 0.95])
def test_md1_wait_distribution_integrates_to_the_mean_wait(load):
    queue = q.md1(arrival_rate=load, service_s=1.0)
    seconds = np.linspace(0, 60 / (1 - load), 12_001)
    tail = [1 - queue.p_wait_within(t) for t in seconds]
    # The trapezium rule is off by h^2/12 of the change of slope, below 1e-4 here; the rest of the tail is below 1e-20.
    assert np.trapezoid(tail, seconds) == pytest.approx(queue.mean_wait_s, rel=2e-3)


def test_md1_wait_within_one_service_is_an_exponential_times_the_idle_share():
    queue = q.md1(arrival_rate=0.7, service_s=1.0)  # Erlang's sum has one term there: (1 - rho) e^(lambda t)
    for seconds in (0.0, 0.3, 0.999):
        assert queue.p_wait_within(seconds) == pytest.approx(0.3 * math.exp(0.7 * seconds), rel=1e-12)


@given(st.floats(0.02, 0.98), st.floats(0, 0.999))
def test_md1_percentile_inverts_its_distribution(load, quantile):
    queue = q.md1(arrival_rate=load, service_s=1.0)
    seconds = queue.wait_percentile_s(quantile)
    if seconds == 0:
        assert queue.p_wait_within(0.0) >= quantile - 1e-12
    else:
        assert queue.p_wait_within(seconds) == pytest.approx(quantile, abs=1e-8)


@pytest.mark.parametrize("servers", [1, 8, 32])
def test_mmc_percentiles_invert_their_tails(servers):
    queue = q.mmc(arrival_rate=0.9 * servers, service_s=1.0, servers=servers)
    for quantile in (0.5, 0.9, 0.99, 0.9999):
        inside = queue.time_in_system_percentile_s(quantile)
        assert queue.p_time_in_system_above(inside) == pytest.approx(1 - quantile, rel=1e-8)
        wait = queue.wait_percentile_s(quantile)
        assert queue.p_wait_above(wait) <= 1 - quantile + 1e-12
        assert wait == 0 or queue.p_wait_above(wait) == pytest.approx(1 - quantile, rel=1e-9)


def test_mmc_time_in_system_where_two_rates_coincide():
    # With c - 1 = lambda S the general formula divides zero by zero; its limit must join its neighbours.
    queues = [q.mmc(arrival_rate=rate, service_s=1.0, servers=3) for rate in (2 - 1e-6, 2.0, 2 + 1e-6)]
    below, at, above = (queue.p_time_in_system_above(2.0) for queue in queues)
    assert below < at < above and above - below < 1e-5


def test_mm1_p99_is_46_means_at_every_load():
    for load in (0.1, 0.5, 0.9, 0.99):
        queue = q.mm1(arrival_rate=load, service_s=1.0)
        assert queue.time_in_system_percentile_s(0.99) / queue.mean_time_in_system_s == pytest.approx(math.log(100))


@given(loads, st.integers(1, 64))
def test_sharing_with_linear_rates_is_mmc(load, servers):
    shared = q.processor_sharing(arrival_rate=load * servers, rates=np.arange(1.0, servers + 1))
    erlang = q.mmc(arrival_rate=load * servers, service_s=1.0, servers=servers)
    assert shared.p_wait == pytest.approx(erlang.p_wait, rel=1e-7)
    assert shared.mean_wait_s == pytest.approx(erlang.mean_wait_s, rel=1e-7)
    assert shared.mean_time_in_system_s == pytest.approx(erlang.mean_time_in_system_s, rel=1e-7)
    assert shared.wait_percentile_s(0.99) == pytest.approx(erlang.wait_percentile_s(0.99), abs=1e-6)


@given(loads)
def test_sharing_with_one_rate_is_mm1_whatever_the_slots(load):
    one = q.mm1(arrival_rate=load, service_s=1.0)
    shared = q.processor_sharing(arrival_rate=load, rates=[1.0] * 16)
    assert shared.mean_time_in_system_s == pytest.approx(one.mean_time_in_system_s, rel=1e-7)
    assert shared.mean_in_batch_requests + shared.mean_waiting_requests == pytest.approx(
        shared.mean_in_system_requests, rel=1e-9
    )


def test_sharing_probabilities_sum_to_one_with_a_thousand_slots():
    rates = 100 * np.arange(1, 1_001) / (100 + np.arange(1, 1_001))
    shared = q.processor_sharing(arrival_rate=80.0, rates=rates)
    beyond = shared.p_in_system[-1] * shared.utilisation / (1 - shared.utilisation)
    assert shared.p_in_system.sum() + beyond == pytest.approx(1, rel=1e-12)


def test_stepped_servers_near_erlang_as_steps_get_short():
    erlang = q.mmc(arrival_rate=6.4, service_s=1.0, servers=8)
    gaps = []
    for tokens in (10, 40, 160):
        stepped = q.stepped_servers(arrival_rate=6.4, step_s=1 / tokens, mean_tokens=tokens, max_num_seqs=8)
        gaps.append(stepped.mean_time_in_system_s - erlang.mean_time_in_system_s)
    # Who finds a slot free still waits half a step; who finds them full starts at a boundary anyway: the gap lies
    # between (1 - C) half steps and one half step, and falls in proportion to the step.
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert (1 - erlang.p_wait) * 0.5 / 160 < gaps[2] < 0.5 / 160


def test_bulk_service_of_one_is_md1():
    bulk = q.bulk_service(arrival_rate=0.8, batch_s=[1.0])
    single = q.md1(arrival_rate=0.8, service_s=1.0)
    assert bulk.mean_wait_s == pytest.approx(single.mean_wait_s, rel=1e-8)  # states beyond a tail of 1e-12 are cut
    assert bulk.busy == pytest.approx(single.utilisation, rel=1e-8)
    assert bulk.mean_batch_requests == pytest.approx(1.0)


def test_stepped_servers_with_one_slot_and_one_token_is_md1():
    stepped = q.stepped_servers(arrival_rate=0.8, step_s=1.0, mean_tokens=1, max_num_seqs=1)
    assert stepped.mean_wait_s == pytest.approx(q.md1(arrival_rate=0.8, service_s=1.0).mean_wait_s, rel=1e-8)


def test_bulk_service_balances_its_flow():
    # Requests out per second must equal requests in: batches per second times requests a batch.
    bulk = q.bulk_service(arrival_rate=60.0, batch_s=[0.02 + 0.005 * b for b in range(1, 9)])
    assert bulk.busy > bulk.utilisation  # busy with small batches long before it is full
    assert 1 < bulk.mean_batch_requests < 8
    assert bulk.mean_in_system_requests == pytest.approx(60 * bulk.mean_time_in_system_s)


@pytest.mark.parametrize("batch", [1, 2, 32])
def test_gain_of_equal_and_exponential_lengths(batch):
    assert q.fixed_gain(batch=batch, mean_tokens=128).gain == 1
    harmonic = math.fsum(1 / i for i in range(1, batch + 1))
    assert q.exponential_gain(batch=batch).gain == pytest.approx(harmonic)


def test_gain_of_lognormal_lengths_has_its_limits():
    assert q.lognormal_gain(batch=32, output_cv=0).gain == 1
    assert q.lognormal_gain(batch=1, output_cv=3).gain == pytest.approx(1)
    # Near a CV of 0 a lognormal is normal: E[max of 2] = mean + sigma / sqrt(pi).
    assert q.lognormal_gain(batch=2, output_cv=1e-3).gain == pytest.approx(1 + 1e-3 / math.sqrt(math.pi), rel=1e-6)
    gains = [q.lognormal_gain(batch=32, output_cv=cv).gain for cv in (0.3, 1, 2, 5, 10)]
    assert gains == sorted(gains) and gains[-1] < 32  # never more than the batch


def test_gain_of_lognormal_lengths_equals_a_large_sample():
    rng = np.random.default_rng(0)
    sigma = math.sqrt(math.log(2))
    sample = np.exp(sigma * rng.standard_normal((40_000, 32)) - sigma**2 / 2).max(axis=1)
    error = sample.std(ddof=1) / math.sqrt(len(sample))
    assert q.lognormal_gain(batch=32, output_cv=1).gain == pytest.approx(sample.mean(), abs=3.3 * error)  # 99.9%


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.integers(1, 3))
def test_gain_of_a_sample_equals_every_batch_written_out(values, batch):
    batches = np.array(np.meshgrid(*[values] * batch)).reshape(batch, -1)
    expected = batches.max(axis=0).mean() / np.mean(values)
    assert q.empirical_gain(batch=batch, output_tokens=values).gain == pytest.approx(expected)


def test_static_bounds_are_in_order_and_the_fill_grows_as_load_falls():
    busy = q.static_batching(arrival_rate=10, max_num_seqs=8, mean_batch_s=0.5, batch_cv=0.3)
    quiet = q.static_batching(arrival_rate=1, max_num_seqs=8, mean_batch_s=0.5, batch_cv=0.3)
    for bounds in (busy, quiet):
        assert 0 <= bounds.mean_server_wait_low_s <= bounds.mean_server_wait_high_s
    assert (busy.mean_fill_s, quiet.mean_fill_s) == (0.35, 3.5)


def test_demand_of_long_answers_looks_back_a_whole_mean_answer_when_the_cv_is_1():
    assert q.demand(prompt_tokens=512, output_tokens=256).context_tokens == pytest.approx(512 + 128)
    assert q.demand(prompt_tokens=512, output_tokens=256, output_cv=1).context_tokens == pytest.approx(768, rel=1e-3)


def test_capacity_by_hand_with_round_numbers():
    # 10 ms a step and 1 ms a 100-token prompt; 10 slots of 100 tokens: a request costs 10 steps and its prompt, 101 ms.
    full = q.continuous_capacity(
        q.demand(prompt_tokens=100, output_tokens=100),
        PowerLaw(10e-3, 0, 1, prefill=10e-6),
        max_num_seqs=10,
        max_num_batched_tokens=1_000,
    )
    assert full.requests_per_s == pytest.approx(1 / 0.101)
    assert full.output_tokens_per_s == pytest.approx(100 / 0.101)


def test_capacity_under_a_small_budget_is_the_budget():
    full = q.continuous_capacity(
        q.demand(prompt_tokens=1_000, output_tokens=1),
        PowerLaw(10e-3, 0, 1),
        max_num_seqs=64,
        max_num_batched_tokens=100,
    )
    assert full.requests_per_s == pytest.approx(100 / 1_000 / 10e-3)


def test_static_capacity_loses_the_gain_when_steps_are_constant():
    need, step = q.demand(prompt_tokens=1, output_tokens=200), PowerLaw(10e-3, 0, 1)
    static = q.static_capacity(need, q.lognormal_gain(batch=16, output_cv=1), step, max_num_seqs=16)
    full = q.continuous_capacity(need, step, max_num_seqs=16, max_num_batched_tokens=1_000)
    gain = q.lognormal_gain(batch=16, output_cv=1).gain
    # The longest answer is a whole number of tokens, at most half a token off in about 700.
    assert full.requests_per_s / static.requests_per_s == pytest.approx(gain, rel=1e-3)


def test_a_forecast_at_a_trickle_is_the_request_alone():
    step = PowerLaw(10e-3, 1e-3, 1, prefill=1e-5)
    alone = q.continuous_batching(
        q.demand(prompt_tokens=100, output_tokens=50),
        step,
        arrival_rate=1e-6,
        max_num_seqs=8,
        max_num_batched_tokens=512,
    )
    assert alone.mean_ttft_s == pytest.approx(11e-3, rel=1e-4)
    assert alone.mean_e2e_s == pytest.approx(11e-3 + 49 * 11e-3, rel=1e-4)


@given(st.floats(0.05, 0.97), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_forecast_percentile_inverts_its_tail(load, quantile):
    need, step = q.demand(prompt_tokens=100, output_tokens=50), PowerLaw(10e-3, 1e-3, 1, prefill=1e-5)
    settings = dict(max_num_seqs=8, max_num_batched_tokens=512)
    rate = load * q.continuous_capacity(need, step, **settings).requests_per_s
    forecast = q.continuous_batching(need, step, arrival_rate=rate, **settings)
    seconds = forecast.ttft_percentile_s(quantile)
    assert sum(share for share, _ in forecast.landings) == pytest.approx(1)
    assert forecast.p_ttft_above(seconds * (1 + 1e-9)) <= 1 - quantile + 1e-9  # the tail has jumps: at or below
    assert forecast.p_ttft_above(seconds * (1 - 1e-6)) >= 1 - quantile - 1e-9
