"""Every field of a capacity, a bound and a queue, from sums that fit on a line."""

from math import exp, log

import numpy as np
import pytest

from course import policies, queueing, serve
from course.steptime import PowerLaw
from course.workload import Workload

TEN = PowerLaw(0.010, 0, 1)  # every step takes 10 ms
NEED = queueing.Demand(prompt_tokens=8, output_tokens=5, context_tokens=10)


def test_continuous_capacity():
    """A request holds its slot for a step with its prompt and four decodes: 4 slots finish 4 / 5 requests a step."""
    found = queueing.continuous_capacity(NEED, TEN, max_num_seqs=4, max_num_batched_tokens=64)
    assert found.step_s == pytest.approx(0.010)
    assert found.requests_per_s == pytest.approx(4 / 5 / 0.010)
    assert found.output_tokens_per_s == pytest.approx(4 / 0.010)
    assert found.decodes_per_step == pytest.approx(4 / 5 * 4)
    assert found.prefill_tokens_per_step == pytest.approx(4 / 5 * 8)


def test_continuous_capacity_where_the_budget_cuts_the_prompt():
    """Three others decode, so 6 tokens a step leave 3: a prompt of 8 takes three chunks, and its slot as many steps."""
    found = queueing.continuous_capacity(NEED, TEN, max_num_seqs=4, max_num_batched_tokens=6)
    assert found.requests_per_s == pytest.approx(6 / (8 + 4) / 0.010)  # the budget is less than the slots, 4 / (3 + 4)
    long = queueing.Demand(prompt_tokens=8, output_tokens=50, context_tokens=30)
    found = queueing.continuous_capacity(long, TEN, max_num_seqs=4, max_num_batched_tokens=6)
    assert found.requests_per_s == pytest.approx(4 / (3 + 49) / 0.010)  # and here the slots are


def test_continuous_capacity_is_a_mix_of_steps():
    """4/5 of the steps hold a prompt of 8 tokens at 1 ms each and three decodes over 10 tokens, 1/5 four decodes."""
    step = PowerLaw(0.010, 0, 1, prefill=1e-3, context=1e-4)
    found = queueing.continuous_capacity(NEED, step, max_num_seqs=4, max_num_batched_tokens=64)
    with_prompt, without = 0.010 + 8e-3 + 3 * 10e-4, 0.010 + 4 * 10e-4
    assert found.step_s == pytest.approx(4 / 5 * with_prompt + 1 / 5 * without)


def test_static_capacity():
    """Five steps: four prompts at once, then four decodes of four sequences over prompt + 1 ... prompt + 4 tokens."""
    step = PowerLaw(0.010, 0, 1, prefill=1e-3, context=1e-4)
    found = queueing.static_capacity(NEED, queueing.fixed_gain(batch=4, mean_tokens=5), step, max_num_seqs=4)
    batch = 5 * 0.010 + 4 * 8e-3 + 1e-4 * 4 * (9 + 10 + 11 + 12)
    assert found.requests_per_s == pytest.approx(4 / batch)
    assert found.output_tokens_per_s == pytest.approx(4 * 5 / batch)
    assert found.step_s == pytest.approx(batch / 5)
    assert found.decodes_per_step == pytest.approx(4 * 4 / 5)
    assert found.prefill_tokens_per_step == pytest.approx(4 * 8 / 5)


def test_service_rates_end_with_the_capacity_and_begin_with_one_alone():
    rates = queueing.service_rates(NEED, TEN, max_num_seqs=3, max_num_batched_tokens=64)
    assert rates == pytest.approx([n / 5 / 0.010 for n in (1, 2, 3)])


def test_the_context_of_an_average_decode():
    """One prompt of 10 with 3 tokens decodes at 11 and 12; one of 20 with 2 tokens at 21."""
    load = Workload(arrival=[0, 0], prompt_tokens=[10, 20], output_tokens=[3, 2])
    assert queueing.demand_of(load).context_tokens == pytest.approx((11 + 12 + 21) / 3)
    assert queueing.demand(prompt_tokens=10, output_tokens=3).context_tokens == pytest.approx((11 + 12) / 2)


def test_two_exponential_answers():
    """The longer of two lasts 1 + 1/2 means: a third of what is paid for is padding."""
    bound = queueing.exponential_gain(batch=2, mean_tokens=10)
    assert (bound.gain, bound.longest_tokens, bound.wasted_share) == pytest.approx((1.5, 15, 1 / 3))
    drawn = queueing.empirical_gain(batch=2, output_tokens=[1, 3])
    assert drawn.longest_tokens == pytest.approx(1 / 4 * 1 + 3 / 4 * 3) and drawn.mean_tokens == 2


@pytest.mark.parametrize(("kind", "wait"), [(queueing.mm1, 0.05), (queueing.md1, 0.025)])
def test_one_server_at_half_its_load(kind, wait):
    """Ten requests/s of 50 ms. The wait is rho S / (1 - rho), and half of it for equal services; numbers by Little."""
    found = kind(arrival_rate=10, service_s=0.05)
    assert (found.utilisation, found.p_wait, found.mean_wait_s) == pytest.approx((0.5, 0.5, wait))
    assert found.mean_time_in_system_s == pytest.approx(wait + 0.05)
    assert found.mean_waiting_requests == pytest.approx(10 * wait)
    assert found.mean_in_system_requests == pytest.approx(10 * wait + 0.5)


def test_waiting_for_a_batch_to_fill():
    """Four a batch at 2/s: 3 / (2 x 2) s on average. Batches of 1 s come every 2 s: Kingman's bound by hand."""
    found = queueing.static_batching(arrival_rate=2, max_num_seqs=4, mean_batch_s=1.0)
    assert found.mean_fill_s == pytest.approx(3 / 4) and found.utilisation == pytest.approx(1 / 2)
    assert found.mean_server_wait_high_s == pytest.approx(0.5 * (4 / 4) / (2 * (1 - 0.5)))
    assert found.mean_time_in_system_high_s == pytest.approx(3 / 4 + 0.5 + 1)


def test_erlang_for_two_servers():
    """a = 1 on two servers: C = 1/3, and a wait is exponential at 2 mu - lambda."""
    found = queueing.mmc(arrival_rate=1, service_s=1, servers=2)
    assert found.p_wait == pytest.approx(1 / 3) == queueing.erlang_c(offered_load=1, servers=2)
    assert found.mean_wait_s == pytest.approx(1 / 3) and found.mean_waiting_requests == pytest.approx(1 / 3)
    assert found.p_wait_above(2.0) == pytest.approx(exp(-2) / 3)
    assert found.wait_percentile_s(0.9) == pytest.approx(log((1 / 3) / 0.1))
    assert found.wait_percentile_s(0.6) == 0
    # c mu - lambda = mu: service and wait decay alike, and t e^-t stands in for their difference.
    assert found.p_time_in_system_above(2.0) == pytest.approx(exp(-2) * (1 + 2 / 3))
    three = queueing.mmc(arrival_rate=1, service_s=1, servers=3)
    rest = three.p_wait * (exp(-2) - exp(-2 * 2)) / 1
    assert three.p_time_in_system_above(2.0) == pytest.approx(exp(-2) + rest)


def test_one_server_that_shares():
    """With the same total rate whatever the number it is M/M/1: rho 1/2, and everybody who finds one there waits."""
    found = queueing.processor_sharing(arrival_rate=1, rates=[2.0])
    single = queueing.mm1(arrival_rate=1, service_s=0.5)
    assert found.p_wait == pytest.approx(1 / 2) == single.p_wait
    assert found.mean_waiting_requests == pytest.approx(1 / 2) == single.mean_waiting_requests
    assert found.mean_in_batch_requests == pytest.approx(1 / 2)
    assert found.mean_time_in_system_s == pytest.approx(1) == single.mean_time_in_system_s
    assert found.wait_percentile_s(0.9) == pytest.approx(log(5)) == single.wait_percentile_s(0.9)
    assert found.wait_percentile_s(0.4) == 0 and found.p_in_system == pytest.approx([1 / 2, 1 / 4])
    assert single.time_in_system_percentile_s(0.99) == pytest.approx(log(100))


def test_a_forecast_of_an_engine_that_is_nearly_idle():
    """Whoever comes lands in an idle engine: TTFT is the step with the prompt, E2E that and four decodes."""
    step = PowerLaw(0.010, 0, 1, prefill=1e-3)
    found = queueing.continuous_batching(NEED, step, arrival_rate=1e-4, max_num_seqs=4, max_num_batched_tokens=64)
    assert found.mean_ttft_s == pytest.approx(0.018, rel=1e-3)
    assert found.mean_e2e_s == pytest.approx(0.018 + 4 * 0.010, rel=1e-3)
    assert found.ttft_percentile_s(0.5) == pytest.approx(0.018, rel=1e-3)


def test_half_a_step_is_left_on_average():
    """Steps of 10 ms whatever they hold: TTFT is what is left of the one in progress, and one of its own."""
    need = queueing.Demand(1, 100, 50)
    found = queueing.continuous_batching(need, TEN, arrival_rate=0.5, max_num_seqs=64, max_num_batched_tokens=64)
    chain = found.sharing
    busy = 1 - chain.p_idle
    assert 0.3 < busy < 0.5 and chain.p_wait < 1e-12
    assert found.mean_ttft_s == pytest.approx(busy * 0.010 / 2 + 0.010)
    assert found.mean_e2e_s == pytest.approx(chain.mean_time_in_system_s + busy * 0.010 / 2)
    shares, steps = zip(*found.landings, strict=True)
    assert sum(shares) == pytest.approx(1) and steps == pytest.approx((0, 0.010, 0.010))
    # Of those who land in a step, one in 0.5/s x 10 ms lands in one with a prompt.
    assert shares[2] == pytest.approx(0.5 * 0.010, rel=0.01) and np.all(np.array(shares) > 0)


def test_a_wait_for_a_bulk_server_against_the_simulator():
    """A pair takes three times as long as one alone: a request is more often in a pair than a batch is one."""
    seconds = [0.010, 0.030]
    load = Workload.poisson(rate=30, num_requests=40_000, prompt_tokens=1, output_tokens=1, seed=0)
    run = serve(load, policies.Dynamic(2, max_queue_delay=0), lambda step: seconds[len(step.prefill_chunks) - 1])
    known = queueing.bulk_service(arrival_rate=30, batch_s=seconds)
    # At 45% of the capacity 40,000 requests give a mean wait to about 2%.
    assert known.mean_wait_s == pytest.approx(run.queue_wait.mean(), rel=0.05)
    assert known.mean_time_in_system_s == pytest.approx(run.e2e.mean(), rel=0.05)
    batches = np.array([1, 2]) @ np.bincount(run.steps.running, minlength=3)[1:]
    assert known.mean_batch_requests == pytest.approx(batches / len(run.steps), rel=0.02)
