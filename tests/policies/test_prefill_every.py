"""Prompts in every k-th step: steps by hand, the same run however it is asked, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve, steptime
from course.policies import Continuous, PrefillEvery
from tests.engine.test_plain import differences, plainly
from tests.helpers import strategies
from tests.helpers.asking import BOTH, serve_asking
from tests.helpers.strategies import examples, fresh

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


@st.composite
def turns(draw):
    """Cases of Continuous with few slots and few blocks, and a k."""
    case = draw(st.one_of(strategies.continuous(), strategies.storms(), strategies.many_in_chunks()))
    limits = case.policy
    every = draw(st.sampled_from([1, 2, 3, 7]))
    policy = PrefillEvery(limits.max_num_seqs, limits.max_num_batched_tokens, every, limits.engine_version)
    return strategies.replace(case, policy=policy)


@pytest.mark.parametrize("serving", BOTH)
def test_two_steps_of_decodes_come_between(serving):
    """Budget 6: beside the decode a prompt of 12 takes 5, 5 and 2 tokens, in every third step."""
    load = Workload([0.0, 0.5], [3, 12], [12, 2])
    run = serving(load, PrefillEvery(4, 6, every=3), SECOND)
    assert run.steps.prefill_tokens.tolist()[:10] == [3, 0, 0, 5, 0, 0, 5, 0, 0, 2]
    assert run.token_times(0).tolist() == list(range(1, 13)) and run.token_times(1).tolist() == [10, 11]


@pytest.mark.parametrize("serving", BOTH)
def test_who_comes_late_enough_goes_at_once(serving):
    load = Workload([0.0, 4.5, 5.5], [2, 2, 2], [12, 8, 1])
    run = serving(load, PrefillEvery(4, 16, every=3), SECOND)
    assert run.admitted.tolist() == [0, 5, 8]  # the last one waits two steps after the other's prompt


def test_while_nobody_decodes_prompts_do_not_wait():
    run = serve(Workload([0.0], [10], [2]), PrefillEvery(2, 4, every=5), SECOND)
    assert run.token_times(0).tolist() == [3, 4]
    one_by_one = serve(Workload([0.0, 0.0], [4, 4], [1, 1]), PrefillEvery(2, 4, every=5), SECOND)
    assert one_by_one.ttft.tolist() == [1, 2]


def test_every_step_is_continuous():
    load = Workload.poisson(2, 60, 20, 12, seed=3)
    same, run = (serve(load, policy, SECOND) for policy in (Continuous(8, 32), PrefillEvery(8, 32, every=1)))
    assert (same.e2e == run.e2e).all() and (same.ttft == run.ttft).all()


def test_equal_to_the_plain_loop_and_asked_before_every_step():
    @given(turns())
    @examples(150, 20)
    def equal(case):
        fast = serve(case.load, fresh(case.policy), case.step_time, case.cache)
        assert not (found := differences(fast, plainly(case))), f"{found}: {case}"
        asked = serve_asking(case.load, fresh(case.policy), case.step_time, case.cache)
        assert not (found := differences(fast, asked)), f"{found}: {case}"

    equal()


def test_out_of_blocks_the_last_one_gives_way():
    run = serve(Workload([0.0, 0.0], [4, 4], [6, 6]), PrefillEvery(2, 8, 2), SECOND, KVCache(12, block_size=1))
    assert run.preempted.tolist() == [0, 1] and len(run.token_times(1)) == 6


@pytest.mark.parametrize("every", [0, 2.5, "often"])
def test_turns_that_cannot_be(every):
    with pytest.raises(ValueError, match="every must be a whole number"):
        PrefillEvery(4, 64, every)


def test_it_says_what_it_is():
    assert repr(policies.PrefillEvery(4, 64)) == "PrefillEvery(max_num_seqs=4, max_num_batched_tokens=64, every=4)"
