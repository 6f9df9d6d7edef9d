"""Bucket: when requests pass, by hand and against a second by second bucket; and buckets that let nobody through."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import Workload, policies, steptime
from course.policies import Bucket
from tests.helpers.asking import BOTH
from tests.helpers.sizes import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
QUICK = steptime.PowerLaw(t0=1e-6, c=0, alpha=1)


@pytest.mark.parametrize("serve", BOTH)
def test_a_full_bucket_lets_a_burst_through_and_then_its_rate(serve):
    """30 tokens in the bucket, 10 a second: requests of 20 tokens pass at 0, 1, 3 and 5 s, though slots are free."""
    load = Workload([0.0] * 4, [20] * 4, [1] * 4)
    run = serve(load, Bucket(8, 512, 10, 30), QUICK)
    assert run.admitted == pytest.approx([0, 1, 3, 5], abs=1e-5)


@pytest.mark.parametrize("serve", BOTH)
def test_each_tenant_has_its_own_and_it_never_holds_more_than_its_burst(serve):
    load = Workload([0, 0, 0, 100, 100, 100], [20] * 6, [1] * 6, tenant=list("ABAAAA"))
    run = serve(load, Bucket(8, 512, 10, 30), QUICK)
    assert run.admitted == pytest.approx([0, 0, 1, 100, 101, 103], abs=1e-5)
    by_class = Workload([0, 0, 0], [20] * 3, [1] * 3, class_=["A", "B", "A"])
    assert serve(by_class, Bucket(8, 512, 10, 30), QUICK).admitted == pytest.approx([0, 0, 1], abs=1e-5)


@pytest.mark.parametrize("serve", BOTH)
def test_a_guess_is_paid_for_as_well(serve):
    load = Workload([0.0, 0.0], [20, 20], [1, 1], guess=[10, 20])
    assert serve(load, Bucket(8, 512, 10, 40), QUICK).admitted == pytest.approx([0, 3], abs=1e-5)


@pytest.mark.parametrize("serve", BOTH)
def test_behind_the_gateway_who_passed_first_is_admitted_first(serve):
    """One slot, taken until 3 s. B came last and passes at once; the second of A passes at 2 s."""
    load = Workload([0, 0, 1], [20, 20, 20], [3, 1, 1], tenant=list("AAB"))
    run = serve(load, Bucket(1, 512, 10, 20), SECOND)
    assert run.admitted.tolist() == [0, 4, 3]


def level_by_level(arrival, cost, rate, burst):
    """When each passes, with the level of the bucket followed from one arrival and one pass to the next."""
    passed, level, now = [], burst, 0.0
    for when, tokens in zip(arrival, cost, strict=True):
        if when > now:
            level, now = min(burst, level + rate * (when - now)), when
        if level < tokens:
            now, level = now + (tokens - level) / rate, tokens
        level -= tokens
        passed.append(now)
    return passed


@examples(60)
@given(st.lists(st.tuples(st.floats(0, 20), st.integers(1, 50)), min_size=1, max_size=30), st.floats(0.5, 30))
def test_passes_are_those_of_a_bucket_and_nobody_asks_for_more_than_rate_and_burst(rows, rate):
    rows = sorted(rows)
    load = Workload([at for at, _ in rows], [cost for _, cost in rows], [1] * len(rows))
    run = BOTH[0](load, Bucket(64, 4_096, rate, 50), QUICK)
    expected = level_by_level(load.arrival.tolist(), load.prompt_tokens.tolist(), rate, 50)
    assert run.admitted == pytest.approx(expected, abs=1e-3)  # some steps of a microsecond later
    for first in range(len(rows)):  # in any interval at most burst + rate x its length
        for last in range(first, len(rows)):
            most = 50 + rate * (expected[last] - expected[first])
            assert load.prompt_tokens[first : last + 1].sum() <= most * (1 + 1e-9) + 1e-6


def test_a_wide_bucket_is_first_come_first_served_and_the_object_serves_again():
    load = Workload.poisson(3.6, 300, 64, 40, seed=2)
    step = steptime.PowerLaw(t0=0.01, c=0, alpha=1)
    plain, wide = policies.Continuous(4, 512), Bucket(4, 512, 1e6, 1e6)
    runs = [serve(load, policy, step) for policy in (plain, wide, wide) for serve in BOTH]
    assert all(np.array_equal(run.e2e, runs[0].e2e) for run in runs)
    assert np.array_equal(BOTH[0](load, runs[-1].policy, step).e2e, runs[0].e2e)  # the copy that served once


def test_a_bucket_that_lets_nobody_through_is_refused():
    for rate in (0, -1, 1e-9, float("nan")):
        with pytest.raises(
            ValueError, match=r"tokens_per_second must be a \w+ number from 0\.001|tokens_per_second must be a number"
        ):
            Bucket(4, 64, rate, 100)
    with pytest.raises(ValueError, match="burst must be a finite number from 1"):
        Bucket(4, 64, 10, 0)
    load = Workload([0, 0], [20, 40], [1, 1], tenant=["A", "noisy"])
    for serve in BOTH:
        with pytest.raises(ValueError, match="request 1 of 'noisy' costs 40 tokens, and a full bucket holds 30"):
            serve(load, Bucket(4, 64, 10, 30), SECOND)
    assert "tokens_per_second=10, burst=30" in repr(Bucket(4, 64, 10, 30))
