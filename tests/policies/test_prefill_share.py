"""Prefill share: steps by hand, what equals it, the same run however it is asked, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve, steptime
from course.policies import Continuous, PrefillShare
from tests.engine.test_plain import differences, plainly
from tests.helpers import strategies
from tests.helpers.asking import BOTH, serve_asking
from tests.helpers.strategies import examples, fresh

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


@st.composite
def shares(draw):
    """Cases of Continuous with few slots and few blocks, and a share."""
    case = draw(st.one_of(strategies.continuous(), strategies.storms(), strategies.many_in_chunks()))
    limits, share = case.policy, draw(st.sampled_from([0.01, 0.2, 0.5, 0.9, 1.0]))
    policy = PrefillShare(limits.max_num_seqs, limits.max_num_batched_tokens, share, limits.engine_version)
    return strategies.replace(case, policy=policy)


@pytest.mark.parametrize("serving", BOTH)
def test_prompts_take_their_share_and_decodes_what_they_need(serving):
    """A quarter of 16 tokens is 4: a prompt of 10 takes three steps, and 0 decodes beside them."""
    load = Workload([0.0, 0.5], [3, 10], [6, 2])
    run = serving(load, PrefillShare(4, 16, 0.25), SECOND)
    assert run.steps.prefill_tokens.tolist() == [3, 4, 4, 2, 0, 0]
    assert run.token_times(0).tolist() == [1, 2, 3, 4, 5, 6] and run.token_times(1).tolist() == [4, 5]


def test_two_prompts_share_the_share_in_order():
    run = serve(Workload([0.0] * 3, [5, 5, 5], [1, 1, 1]), PrefillShare(4, 16, 0.5), SECOND)
    assert run.steps.prefill_tokens.tolist() == [8, 7] and run.ttft.tolist() == [1, 2, 2]


def test_many_decodes_leave_less_than_the_share():
    """Seven of eight tokens decode: the share of 4 is not there."""
    load = Workload([0.0] * 7 + [0.5], [1] * 7 + [3], [6] * 7 + [1])
    run = serve(load, PrefillShare(8, 8, 0.5), SECOND)
    # Four prompts of 1 token in the first step, three beside four decodes; then one token beside seven.
    assert run.steps.prefill_tokens.tolist()[:4] == [4, 4, 1, 1]


def test_the_whole_budget_is_continuous_and_a_small_share_is_one_token():
    load = Workload.poisson(2, 60, 20, 12, seed=3)
    whole, same = (serve(load, policy, SECOND) for policy in (PrefillShare(8, 32, 1.0), Continuous(8, 32)))
    assert (whole.e2e == same.e2e).all() and (whole.ttft == same.ttft).all()
    assert serve(load, PrefillShare(8, 32, 0.01), SECOND).steps.prefill_tokens.max() == 1


def test_equal_to_the_plain_loop_and_asked_before_every_step():
    @given(shares())
    @examples(150, 20)
    def equal(case):
        fast = serve(case.load, fresh(case.policy), case.step_time, case.cache)
        assert not (found := differences(fast, plainly(case))), f"{found}: {case}"
        asked = serve_asking(case.load, fresh(case.policy), case.step_time, case.cache)
        assert not (found := differences(fast, asked)), f"{found}: {case}"
        most = max(1, int(case.policy.prefill_share * case.policy.max_num_batched_tokens))
        calm = fast.steps.preemptions == 0
        assert fast.steps.prefill_tokens[calm].max(initial=0) <= most

    equal()


def test_out_of_blocks_the_last_one_gives_way():
    run = serve(Workload([0.0, 0.0], [4, 4], [6, 6]), PrefillShare(2, 8, 0.5), SECOND, KVCache(12, block_size=1))
    assert run.preempted.tolist() == [0, 1] and len(run.token_times(1)) == 6


@pytest.mark.parametrize(
    ("share", "why"),
    [(0, "prefill_share=0 would never compute a prompt"), (1.5, "prefill_share"), ("half", "prefill_share")],
)
def test_shares_that_cannot_be(share, why):
    with pytest.raises(ValueError, match=why):
        PrefillShare(4, 64, share)


def test_it_says_what_it_is():
    assert repr(policies.PrefillShare(4, 64, 0.5)) == (
        "PrefillShare(max_num_seqs=4, max_num_batched_tokens=64, prefill_share=0.5)"
    )
