"""ByKey and EarliestDeadline: the order of a key, who gives way, and settings that cannot be."""

import numpy as np
import pytest

from course import KVCache, Workload, lengths, policies, steptime
from course.policies import ByKey, EarliestDeadline
from tests.helpers.asking import BOTH

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


def prompt(request):
    return request.prompt_tokens


def at_once(prompts, output=2, **more):
    return Workload([0.0] * len(prompts), prompts, [output] * len(prompts), **more)


@pytest.mark.parametrize("serve", BOTH)
def test_the_least_key_is_admitted_first_and_equal_ones_keep_their_order(serve):
    run = serve(at_once([9, 3, 7, 3]), ByKey(1, 64, key=prompt), SECOND)
    assert run.e2e.tolist() == [8, 2, 6, 4]
    assert serve(at_once([9, 3, 7, 3]), ByKey(1, 64), SECOND).e2e.tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize("serve", BOTH)
def test_the_largest_key_gives_way_when_blocks_are_short(serve):
    """4 blocks of 4 tokens: three prompts of 3 and 4 tokens outgrow them in the third step."""
    for key, victim in ((prompt, 1), (lambda request: -request.prompt_tokens, 2), (None, 2)):
        run = serve(at_once([3, 4, 3], output=4), ByKey(3, 64, key=key), SECOND, KVCache(4, block_size=4))
        assert np.argmax(run.preempted) == victim


@pytest.mark.parametrize("serve", BOTH)
def test_what_is_due_first_comes_first_and_what_has_no_deadline_last(serve):
    load = at_once([5] * 4, deadline=[9, np.nan, 1, 4])
    assert serve(load, EarliestDeadline(1, 64), SECOND).e2e.tolist() == [6, 8, 2, 4]
    # A deadline counts from the arrival: 1 comes later with a shorter one, and 0 is due at 8 s, 1 at 7 s.
    late = Workload([0, 0, 1], [5, 5, 5], [3, 2, 2], deadline=[1, 8, 6])
    assert serve(late, EarliestDeadline(1, 64), SECOND).response.tolist() == [3, 7, 5]


def test_an_order_by_key_is_that_of_shortest_first():
    load = Workload.poisson(6, 150, lengths.geometric(40), lengths.geometric(20), seed=5)
    law = steptime.PowerLaw(t0=5e-3, c=2e-3, alpha=0.9, prefill=1e-4, context=1e-6)
    runs = [
        serve(load, kind, law) for serve in BOTH for kind in (ByKey(6, 64, key=prompt), policies.ShortestFirst(6, 64))
    ]
    assert all(np.array_equal(run.e2e, runs[0].e2e) for run in runs)


def test_settings_of_continuous_are_taken_and_a_key_that_is_none_is_refused():
    policy = ByKey(4, 64, key=prompt, long_prefill_token_threshold=8)
    assert policy.long_prefill_token_threshold == 8 and "long_prefill_token_threshold=8" in repr(policy)
    with pytest.raises(ValueError, match="key must be a function of a request, not 'short'"):
        ByKey(4, 64, key="short")
    with pytest.raises(ValueError, match="max_num_batched_tokens=2 is smaller"):
        EarliestDeadline(4, 2)
