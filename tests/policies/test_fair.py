"""Fair: counters by hand, the bound of the paper on random tenants, weights, lift, and settings that cannot be."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, lengths, policies, steptime
from course.policies import Fair
from tests.helpers.asking import BOTH
from tests.helpers.sizes import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)


@pytest.mark.parametrize("serve", BOTH)
def test_the_tenant_that_was_served_least_comes_next(serve):
    """One slot, 2 s and 5 + 2 x 2 = 9 tokens a request: A and B in turn, though A's four came first."""
    load = Workload([0.0] * 6, [5] * 6, [2] * 6, tenant=list("AAAABB"))
    run = serve(load, Fair(1, 64), SECOND)
    assert run.response.tolist() == [2, 6, 10, 12, 4, 8]


@pytest.mark.parametrize("serve", BOTH)
def test_tokens_are_counted_and_not_requests(serve):
    """A request of A counts 5 + 2 = 7, one of B 16 + 2 = 18: A B A A (21) B."""
    load = Workload([0.0] * 5, [5, 5, 5, 16, 16], [1] * 5, tenant=list("AAABB"))
    assert serve(load, Fair(1, 64), SECOND).response.tolist() == [1, 3, 4, 2, 5]
    # By output tokens alone both count 2: in turn.
    assert serve(load, Fair(1, 64, prompt_weight=0), SECOND).response.tolist() == [1, 3, 5, 2, 4]


@pytest.mark.parametrize("serve", BOTH)
def test_output_counts_as_it_leaves(serve):
    """Two slots. A's first answer goes on for 9 s, and counts more and more: the other slot goes to B, twice."""
    load = Workload([0.0] * 5, [4] * 5, [9, 3, 3, 3, 3], tenant=list("ABABB"))
    run = serve(load, Fair(2, 64), SECOND)
    # After 3 s A has 4 + 6, B 4 + 6: A, which stands first. After 6 s A has 8 + 18, B 10: B, and B again.
    assert run.admitted.tolist() == [0, 0, 3, 6, 9]


@pytest.mark.parametrize("serve", BOTH)
def test_an_output_token_counts_twice(serve):
    """One slot. A's first counts 2 + 2 x 6 = 14, B's 9 + 2 = 11: B is next, though A was served fewer tokens."""
    load = Workload([0.0] * 4, [2, 9, 2, 9], [6, 1, 6, 1], tenant=list("ABAB"))
    assert serve(load, Fair(1, 64), SECOND).response.tolist() == [6, 7, 14, 8]


def served(run, tenant, times, prompt_weight, output_weight):
    """Service of a tenant up to each time: prompts of those admitted before it, tokens that left by then."""
    total = np.zeros(len(times))
    for row in np.flatnonzero(run.workload.tenant == tenant):
        total += prompt_weight * run.workload.prompt_tokens[row] * (run.admitted[row] < times)
        total += output_weight * np.searchsorted(run.token_times(row), times, side="right")
    return total


tenants = st.lists(
    st.tuples(st.floats(0, 12), st.integers(1, 60), st.integers(1, 12), st.sampled_from("ABC")), min_size=6, max_size=40
)


@examples(80)
@given(tenants, st.integers(1, 4), st.sampled_from([(1, 2), (1, 0), (0, 1), (3, 1)]), st.sampled_from([{}, {"A": 3}]))
def test_of_two_that_wait_all_the_time_neither_is_ahead_by_more_than_the_bound(rows, slots, costs, weights):
    """2 max(w_p L, w_q M), with M the output tokens that those in one batch may get: their theorem, one step at a time.

    Each weight divides what it bounds, so the bound is that of the smallest weight, 1.
    """
    rows = sorted(rows)
    load = Workload(*([row[k] for row in rows] for k in range(3)), tenant=[row[3] for row in rows])
    run = BOTH[0](load, Fair(slots, 64, *costs, weights=weights), SECOND)
    longest = np.sort(load.output_tokens)[-slots:].sum()
    bound = 2 * max(costs[0] * load.prompt_tokens.max(), costs[1] * longest)
    starts = run.steps.start
    waits = {
        name: np.array([((run.arrival <= at) & (run.admitted > at) & (load.tenant == name)).any() for at in starts])
        for name in "ABC"
    }
    for one, other in combinations("ABC", 2):
        gap = served(run, one, starts, *costs) / weights.get(one, 1) - served(run, other, starts, *costs)
        both, begin = waits[one] & waits[other], 0
        for place in range(len(starts) + 1):
            if place == len(starts) or not both[place]:
                if place > begin:
                    assert np.ptp(gap[begin:place]) <= bound
                begin = place + 1


@pytest.mark.parametrize("serve", BOTH)
def test_twice_the_weight_is_twice_the_service(serve):
    load = Workload([0.0] * 400, [10] * 400, [5] * 400, tenant=["A", "B"] * 200)
    run = serve(load, Fair(4, 64, weights={"A": 2}), SECOND)
    early = run.response < run.makespan / 2  # while both wait
    a, b = ((load.tenant[early] == name).sum() for name in "AB")
    assert a == pytest.approx(2 * b, rel=0.05)  # whole requests, of which some 35 are counted


@pytest.mark.parametrize("serve", BOTH)
def test_who_comes_back_is_not_paid_for_the_time_without_requests(serve):
    """N alone for 100 s, then A as well: with lift they take turns at once, without it A is served alone for long."""
    arrival = np.sort(np.concatenate([np.arange(0, 200, 1.0), np.arange(100, 200, 1.0)]))
    names = ["N"] * 100 + ["A", "N"] * 100
    load = Workload(arrival, [5] * 300, [2] * 300, tenant=names)
    lifted, left = (serve(load, Fair(1, 64, lift=lift), SECOND) for lift in (True, False))
    stalls = []
    for run in (lifted, left):
        admitted = np.sort(run.admitted[load.tenant == "N"])
        stalls.append(np.diff(admitted[admitted >= 98]).max())
    assert stalls[0] <= 6 < 60 < stalls[1]


@pytest.mark.parametrize("serve", BOTH)
def test_with_nobody_else_waiting_who_comes_starts_level_with_who_left_last(serve):
    """One slot of 20 s. A waited alone and was served much; B comes to an empty queue, and C after it."""
    load = Workload([0, 0, 0, 45, 46, 46, 46], [5] * 7, [20] * 7, tenant=list("AAABACB"))
    run = serve(load, Fair(1, 64), SECOND)
    # From 60 s: B, level with A; then A, C and B are level but for what B had since: A came before C.
    assert run.admitted[3:].tolist() == [60, 80, 100, 120]


@pytest.mark.parametrize("serve", BOTH)
def test_one_tenant_alone_is_first_come_first_served_and_asking_more_often_changes_nothing(serve):
    load = Workload.poisson(9, 300, lengths.geometric(64), lengths.geometric(40), seed=2)
    step = steptime.PowerLaw(t0=0.01, c=0, alpha=1)
    plain, fair = (serve(load, policy, step, KVCache(40)) for policy in (policies.Continuous(12, 512), Fair(12, 512)))
    assert np.array_equal(plain.e2e, fair.e2e)
    two = Workload(load.arrival, load.prompt_tokens, load.output_tokens, tenant=["A", "B", "B"] * 100)
    runs = [way(two, Fair(12, 512), step, KVCache(40)) for way in BOTH]
    assert np.array_equal(runs[0].e2e, runs[1].e2e) and runs[0].preempted.any()
    again = serve(two, runs[0].policy, step, KVCache(40))  # the copy that served once begins at 0
    assert np.array_equal(again.e2e, runs[0].e2e)


def test_weights_that_let_nobody_through_are_refused():
    for weight in (0, -1, float("nan"), "much"):
        with pytest.raises(ValueError, match=r"the weight of 'A' must be a.* would never be served"):
            Fair(4, 64, weights={"A": weight})
    with pytest.raises(ValueError, match="weights must be a dict"):
        Fair(4, 64, weights=[1, 2])
    with pytest.raises(ValueError, match="both 0"):
        Fair(4, 64, prompt_weight=0, output_weight=0)
    with pytest.raises(ValueError, match="output_weight must be a finite number from 0"):
        Fair(4, 64, output_weight=-1)
    shown = repr(Fair(4, 64, weights={"A": 2}, lift=False))
    assert "prompt_weight=1, output_weight=2, lift=False, weights={'A': 2}" in shown
