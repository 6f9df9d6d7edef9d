"""What the formulas must refuse: a load of 1 and above, and settings that are no usable numbers."""

import math

import pytest

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
    with pytest.raises(ValueError, match="near 1"):
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
