"""What the formulas must refuse: a load of 1 and above, and settings that are no usable numbers."""

import itertools
import math
import re

import pytest
from scipy.special import gammaincc

from course import queueing as q
from course.steptime import PowerLaw

UNSTABLE = [
    lambda rho: q.mm1(arrival_rate=rho, service_s=1.0),
    lambda rho: q.md1(arrival_rate=rho, service_s=1.0),
    lambda rho: q.mg1(arrival_rate=rho, mean_service_s=1.0, service_cv=2.0),
    lambda rho: q.mmc(arrival_rate=8 * rho, service_s=1.0, servers=8),
    lambda rho: q.erlang_c(offered_load=8 * rho, servers=8),
    lambda rho: q.stepped_servers(arrival_rate=0.8 * rho, step_s=1.0, mean_tokens=10, max_num_seqs=8),
    lambda rho: q.bulk_service(arrival_rate=rho, batch_s=[1.0, 1.5, 3.0]),
    lambda rho: q.static_batching(arrival_rate=8 * rho, max_num_seqs=8, mean_batch_s=1.0),
    lambda rho: q.processor_sharing(arrival_rate=3 * rho, rates=[1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize("build", UNSTABLE)
@pytest.mark.parametrize("load", [1.0, 1.5, 1e9])
def test_a_load_of_one_and_above_is_refused_with_what_to_change(build, load):
    with pytest.raises(ValueError, match=r"grows without end and has no mean\. \w+ .*"):
        build(load)


BAD = [
    (q.mm1, dict(arrival_rate=0.5, service_s=1.0)),
    (q.md1, dict(arrival_rate=0.5, service_s=1.0)),
    (q.mg1, dict(arrival_rate=0.5, mean_service_s=1.0, service_cv=1.0)),
    (q.mmc, dict(arrival_rate=0.5, service_s=1.0, servers=2)),
    (q.erlang_c, dict(offered_load=0.5, servers=2)),
    (q.stepped_servers, dict(arrival_rate=0.1, step_s=1.0, mean_tokens=5.0, max_num_seqs=4)),
    (q.static_batching, dict(arrival_rate=0.5, max_num_seqs=4, mean_batch_s=1.0, batch_cv=1.0)),
    (q.lognormal_gain, dict(batch=4, output_cv=1.0, mean_tokens=128.0)),
    (q.exponential_gain, dict(batch=4, mean_tokens=128.0)),
    (q.demand, dict(prompt_tokens=10, output_tokens=10, output_cv=1.0)),
]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0, "fast", None, True, 10**400])
@pytest.mark.parametrize(("build", "settings"), BAD)
def test_every_setting_refuses_what_is_no_usable_number(build, settings, wrong):
    build(**settings)
    for name in settings:
        with pytest.raises(ValueError, match=name):
            build(**{**settings, name: wrong})


@pytest.mark.parametrize("wrong", [[], [1.0, math.nan], [1.0, 0.0], [1.0, -2.0]])
def test_lists_of_rates_and_times_name_the_faulty_entry(wrong):
    with pytest.raises(ValueError, match="rates"):
        q.processor_sharing(arrival_rate=0.1, rates=wrong)
    with pytest.raises(ValueError, match="batch_s"):
        q.bulk_service(arrival_rate=0.1, batch_s=wrong)


def test_a_load_too_near_one_for_the_chain_is_refused_not_computed_for_hours():
    with pytest.raises(ValueError, match="close to 1"):
        q.stepped_servers(arrival_rate=0.7999, step_s=1.0, mean_tokens=10, max_num_seqs=8)


def test_a_quantile_of_one_has_no_answer():
    for queue in (q.mm1(arrival_rate=0.5, service_s=1.0), q.md1(arrival_rate=0.5, service_s=1.0)):
        for quantile in (1, 1.5, -0.1, math.nan):
            with pytest.raises(ValueError, match="quantile"):
                queue.wait_percentile_s(quantile)


def test_a_budget_below_the_slots_is_refused():
    with pytest.raises(ValueError, match="raise the budget or lower the slots"):
        q.continuous_capacity(
            q.demand(prompt_tokens=8, output_tokens=8), PowerLaw(1, 0, 1), max_num_seqs=64, max_num_batched_tokens=32
        )


NEED = q.demand(prompt_tokens=8, output_tokens=10)
BUDGET = dict(max_num_seqs=8, max_num_batched_tokens=64)
GAIN = q.lognormal_gain(batch=8, output_cv=1)
OF_STEPS = {
    "continuous_capacity": lambda step_time: q.continuous_capacity(NEED, step_time, **BUDGET),
    "static_capacity": lambda step_time: q.static_capacity(NEED, GAIN, step_time, max_num_seqs=8),
    "service_rates": lambda step_time: q.service_rates(NEED, step_time, **BUDGET),
    "continuous_batching": lambda step_time: q.continuous_batching(NEED, step_time, arrival_rate=1e-3, **BUDGET),
}


@pytest.mark.parametrize("name", OF_STEPS)
@pytest.mark.parametrize("wrong", [None, 5, "fast", PowerLaw])
def test_a_step_time_is_something_that_gives_seconds(name, wrong):
    with pytest.raises(ValueError, match="step_time must be a callable from a Step to seconds"):
        OF_STEPS[name](wrong)


@pytest.mark.parametrize("name", OF_STEPS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, 0, -1.0, None, "1"])
@pytest.mark.parametrize("where", ["in the step with the prompts", "later"])
def test_every_step_time_is_looked_at_not_only_the_first(name, bad, where):
    def step_time(step):
        return bad if bool(step.prefill_chunks) == (where != "later") else 1.0

    with pytest.raises(ValueError, match=r"the step time must be .*; it was asked for Step\("):
        OF_STEPS[name](step_time)


@pytest.mark.parametrize(
    "build",
    [
        lambda bad: q.continuous_capacity(bad, PowerLaw(1, 0, 1), **BUDGET),
        lambda bad: q.static_capacity(bad, GAIN, PowerLaw(1, 0, 1), max_num_seqs=8),
        lambda bad: q.continuous_batching(bad, PowerLaw(1, 0, 1), arrival_rate=1e-3, **BUDGET),
        lambda bad: q.static_capacity(NEED, bad, PowerLaw(1, 0, 1), max_num_seqs=8),
        lambda bad: q.demand_of(bad),
    ],
)
@pytest.mark.parametrize("bad", [None, 5, "8 tokens", {}])
def test_a_demand_a_bound_and_a_workload_are_what_they_are(build, bad):
    with pytest.raises(ValueError, match=r"^(need|longest|load) must be a \w+, such as .*, not "):
        build(bad)


@pytest.mark.parametrize("name", ["prompt_tokens", "output_tokens", "context_tokens"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 0, -5, None, "8", 1e300])
def test_a_demand_written_by_hand_is_checked(name, bad):
    with pytest.raises(ValueError, match=f"^{name} must be "):
        q.Demand(**{**dict(prompt_tokens=8, output_tokens=8, context_tokens=12), name: bad})


# Numbers that no system has, and counts that would take hours or all memory


@pytest.mark.parametrize("huge", [1e308, 5e-324])
@pytest.mark.parametrize(("build", "settings"), BAD)
def test_every_setting_at_the_edge_of_floats_is_refused_or_harmless(build, settings, huge):
    for name in settings:
        try:
            found = build(**{**settings, name: huge})
        except ValueError as error:
            assert re.search(rf"{name} must be|grows without end", str(error))
        else:
            assert all(
                math.isfinite(value) for value in (vars(found).values() if hasattr(found, "__dict__") else [found])
            )


@pytest.mark.parametrize(
    "build",
    [
        lambda many: q.erlang_c(offered_load=1.0, servers=many),
        lambda many: q.mmc(arrival_rate=1.0, service_s=1.0, servers=many),
        lambda many: q.exponential_gain(batch=many),
        lambda many: q.lognormal_gain(batch=many, output_cv=1.0),
        lambda many: q.empirical_gain(batch=many, output_tokens=[1, 2]),
        lambda many: q.static_batching(arrival_rate=1.0, max_num_seqs=many, mean_batch_s=1.0),
        lambda many: q.static_capacity(NEED, GAIN, PowerLaw(1, 0, 1), max_num_seqs=many),
        lambda many: q.continuous_capacity(NEED, PowerLaw(1, 0, 1), max_num_seqs=many, max_num_batched_tokens=many),
        lambda many: q.service_rates(NEED, PowerLaw(1, 0, 1), max_num_seqs=many, max_num_batched_tokens=many),
    ],
)
def test_a_billion_servers_are_refused_at_once(build):
    with pytest.raises(ValueError, match=r"(servers|batch|max_num_seqs) must be a whole number from 1 to "):
        build(10**9)


def test_a_million_servers_are_erlangs_formula_still():
    # By the Poisson probabilities that Erlang's B is made of, in logarithms: B = P(c) / P(at most c).
    load, servers = 999_000.0, 10**6
    at = servers * math.log(load) - load - math.lgamma(servers + 1)
    blocked = math.exp(at) / float(gammaincc(servers + 1, load))
    expected = blocked / (1 - load / servers * (1 - blocked))
    # lgamma of 1e6 is 1.3e7, with 16 digits: its last one is 2e-9 of the result.
    assert q.erlang_c(offered_load=load, servers=servers) == pytest.approx(expected, rel=1e-7)


def test_an_answer_too_long_to_add_up_is_refused():
    long = q.demand(prompt_tokens=8, output_tokens=1e9)
    with pytest.raises(
        ValueError, match=r"the longest answer of a batch has .* tokens, one step each, and at most 1,000,0"
    ):
        q.static_capacity(long, GAIN, PowerLaw(1, 0, 1), max_num_seqs=8)


@pytest.mark.parametrize("wrong", [None, 5, "123", {1: 2.0}])
def test_rates_and_times_are_lists(wrong):
    with pytest.raises(ValueError, match="rates must be a list with the service rate"):
        q.processor_sharing(arrival_rate=0.1, rates=wrong)
    with pytest.raises(ValueError, match="batch_s must be a list with the seconds"):
        q.bulk_service(arrival_rate=0.1, batch_s=wrong)


def test_a_list_of_rates_without_end_is_refused():
    with pytest.raises(ValueError, match="rates has more than 1,000,000 entries"):
        q.processor_sharing(arrival_rate=0.1, rates=itertools.repeat(1.0))


def test_waits_of_md1_at_the_edges():
    light = q.md1(arrival_rate=0.5, service_s=1.0)
    assert light.p_wait_within(1e6) == light.p_wait_within(1e300) == 1.0
    # A long time in which the sum still runs says the same as the bound that spares it.
    assert light.p_wait_within(100_000) == pytest.approx(1, abs=1e-12)
    heavy = q.md1(arrival_rate=1 - 1e-9, service_s=1.0)
    with pytest.raises(ValueError, match="so close to 1 that waits last more than 131,072 services"):
        heavy.wait_percentile_s(0.99)


def test_the_tail_of_mmc_far_out():
    # One server: time in system is exponential at rate mu - lambda, whatever the time.
    queue = q.mmc(arrival_rate=0.9, service_s=1.0, servers=1)
    assert queue.p_time_in_system_above(2_000) == pytest.approx(math.exp(-200), rel=1e-9)
    assert queue.p_time_in_system_above(1e300) == 0
    assert q.mmc(arrival_rate=2.0, service_s=1.0, servers=3).p_time_in_system_above(1e308) == 0
    assert q.mmc(arrival_rate=1e-9, service_s=1.0, servers=500).wait_percentile_s(0.999) == 0


def test_a_step_for_each_request_alone():
    # One token each: everybody who is there at the start of a step has left by its end.
    queue = q.stepped_servers(arrival_rate=1e-12, step_s=1e-12, mean_tokens=1, max_num_seqs=8)
    assert queue.mean_time_in_system_s == pytest.approx(1e-12, rel=1e-3)
