"""Longest prefix first: who finds most is admitted first, and ageing that ends that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve, steptime
from course.policies import Continuous, LongestPrefixFirst
from tests.engine.test_prefixes_at_random import sharing
from tests.helpers.asking import BOTH
from tests.helpers.in_both_loops import same_in_both
from tests.helpers.strategies import examples, replace

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second
CACHE = KVCache(40, block_size=4, prefix_caching=True)
A, B = (1, 2, 3), (11, 12, 13)  # hashes of three blocks each


def manuals(arrival=(0.0, 0.5, 0.5, 0.5)):
    """A is asked for first, then B, A and B again: each prompt of 13 tokens has one of its own, answers have 2."""
    return Workload(arrival, [13] * 4, [2] * 4, prefix=(A, B, A, B), prefix_block_size=4)


@pytest.mark.parametrize("serving", BOTH)
def test_who_finds_most_is_admitted_first_and_equal_ones_in_order(serving):
    """One slot: after A's first question A's second is next, and then those about B in order of arrival."""
    run = serving(manuals(), LongestPrefixFirst(1, 64), SECOND, CACHE)
    assert run.admitted.tolist() == [0, 4, 2, 6]
    assert serving(manuals(), Continuous(1, 64), SECOND, CACHE).admitted.tolist() == [0, 2, 4, 6]
    # What is found counts, and not what is left to compute: 17 tokens after 12 that are there go before 13 new ones.
    load = Workload([0.0, 0.5, 0.5], [13, 13, 29], [2] * 3, prefix=(A, B, A), prefix_block_size=4)
    assert serving(load, LongestPrefixFirst(1, 64), SECOND, CACHE).admitted.tolist() == [0, 4, 2]


@pytest.mark.parametrize("serving", BOTH)
def test_who_has_waited_long_enough_is_next(serving):
    """At 2 s all have waited for 1.5 s: first come first served."""
    run = serving(manuals(), LongestPrefixFirst(1, 64, ageing=1.5), SECOND, CACHE)
    assert run.admitted.tolist() == [0, 2, 4, 6]
    assert serving(manuals(), LongestPrefixFirst(1, 64, ageing=1.6), SECOND, CACHE).admitted.tolist() == [0, 4, 2, 6]
    # B's first question, 3.5 s old, goes before A's third, which finds more.
    load = Workload([0.0, 0.5, 0.5, 3.0], [13] * 4, [2] * 4, prefix=(A, B, A, A), prefix_block_size=4)
    assert serving(load, LongestPrefixFirst(1, 64, ageing=3), SECOND, CACHE).admitted.tolist() == [0, 4, 2, 6]
    assert serving(load, LongestPrefixFirst(1, 64), SECOND, CACHE).admitted.tolist() == [0, 6, 2, 4]


def test_without_prefix_caching_it_is_continuous():
    load = Workload.poisson(2, 60, 20, 12, seed=3)
    same, run = (serve(load, kind(8, 32), SECOND, KVCache(60)) for kind in (Continuous, LongestPrefixFirst))
    assert (same.e2e == run.e2e).all() and (same.ttft == run.ttft).all()


def test_equal_to_the_plain_loop_and_asked_before_every_step():
    @given(sharing(), st.sampled_from([0, 0.5, 3, float("inf")]))
    @examples(100, 15)
    def equal(case, ageing):
        limits = case.policy.max_num_seqs, case.policy.max_num_batched_tokens
        same_in_both(replace(case, policy=LongestPrefixFirst(*limits, ageing)))

    equal()


def test_ageing_that_cannot_be_and_what_it_says_it_is():
    with pytest.raises(ValueError, match="ageing must be"):
        LongestPrefixFirst(4, 64, ageing=-1)
    said = "LongestPrefixFirst(max_num_seqs=4, max_num_batched_tokens=64, ageing=2)"
    assert repr(policies.LongestPrefixFirst(4, 64, 2)) == said
